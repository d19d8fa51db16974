package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a run does.
type Config struct {
	API        string  `json:"api"`
	Queue      string  `json:"queue"`
	Queues     int     `json:"queues"`
	Tags       int     `json:"tags"`
	Producers  int     `json:"producers"`
	Consumers  int     `json:"consumers"`
	Batch      int     `json:"batch"`
	Body       int     `json:"body"`
	Seconds    float64 `json:"seconds"`
	Wait       int     `json:"wait"`
	Rate       float64 `json:"rate,omitempty"`
	Groups     int     `json:"fifo_groups,omitempty"`
	Visibility int     `json:"visibility"`
}

// A service opens the queues of a run, and gives each worker a connection.
type service interface {
	open(cfg Config) error // makes the queues, and empties them
	sender(r *Run, worker int) link
	receiver(r *Run, worker int) link
	empty() // the queues, of whatever a run has left
}

// A link is the connection of one worker. Its calls tell which messages of the
// call were done, by their place in it; an error is of the others.
type link interface {
	send(seqs []int, done func(i int)) error
	receive(most, wait int) ([]Message, error) // none: nothing came while it waited
	remove(msgs []Message, done func(i int)) error
	close()
}

// Run is one load: sends for cfg.Seconds, and receives until all that was sent
// is deleted. Each tag has a book of its own: it gets each message.
type Run struct {
	cfg    Config
	svc    service
	bodies *Bodies
	books  []*Verifier
	starts []int64 // when the send (or, at a fixed rate, its turn) began
	t0     time.Time
	until  int64 // no send begins later
	ctx    context.Context
	abort  context.CancelFunc
	idle   time.Duration

	next      atomic.Int64
	sendDone  atomic.Bool
	lastMove  atomic.Int64
	lastDel   atomic.Int64
	errs      atomic.Int64
	emptyPoll atomic.Int64
	errMu     sync.Mutex
	errTexts  []string
}

// newRun is a run of at most n messages.
func newRun(ctx context.Context, abort context.CancelFunc, cfg Config, svc service, n int, idle time.Duration) (*Run, error) {
	id := make([]byte, 4)
	rand.Read(id)
	bodies, err := NewBodies(hex.EncodeToString(id), cfg.Body)
	if err != nil {
		return nil, err
	}
	r := &Run{cfg: cfg, svc: svc, bodies: bodies, starts: make([]int64, n), t0: time.Now(), ctx: ctx, abort: abort, idle: idle}
	for range cfg.Tags {
		if cfg.Groups > 0 {
			r.books = append(r.books, NewVerifier(n, cfg.groupCount(), cfg.groupOf))
		} else {
			r.books = append(r.books, NewVerifier(n, 0, nil))
		}
	}
	return r, nil
}

func (r *Run) now() int64 { return int64(time.Since(r.t0)) + 1 }

func (r *Run) fail(what string, err error) {
	n := r.errs.Add(1)
	r.errMu.Lock()
	if len(r.errTexts) < 5 {
		r.errTexts = append(r.errTexts, what+": "+err.Error())
	}
	r.errMu.Unlock()
	if n > 500 {
		r.abort()
	}
}

type hists struct{ send, sendWork, recv, del, e2e *Histogram }

func newHists() *hists {
	return &hists{NewHistogram(), NewHistogram(), NewHistogram(), NewHistogram(), NewHistogram()}
}

func (h *hists) merge(o *hists) {
	h.send.Merge(o.send)
	h.sendWork.Merge(o.sendWork)
	h.recv.Merge(o.recv)
	h.del.Merge(o.del)
	h.e2e.Merge(o.e2e)
}

// seqs hands a worker its next batch of sequence numbers; none: it is done.
func (r *Run) seqs(worker, turn int, into []int) []int {
	into, n := into[:0], len(r.starts)
	if r.cfg.Groups > 0 { // each producer owns its groups, so that order within a group is defined
		p := r.cfg.Producers
		for i := turn * r.cfg.Batch; i < (turn+1)*r.cfg.Batch; i++ {
			if s := i*p + worker; s < n {
				into = append(into, s)
			}
		}
		return into
	}
	at := int(r.next.Add(int64(r.cfg.Batch))) - r.cfg.Batch
	for s := at; s < at+r.cfg.Batch && s < n; s++ {
		into = append(into, s)
	}
	return into
}

func (c *Config) groupOf(seq int) int {
	per := (c.Groups + c.Producers - 1) / c.Producers
	return seq%c.Producers + c.Producers*((seq/c.Producers)%per)
}

func (c *Config) groupCount() int {
	return c.Producers * ((c.Groups + c.Producers - 1) / c.Producers)
}

// queue and tag of a worker: connections are dealt out in turn.
func (c *Config) queue(worker int) string {
	if c.Queues == 1 {
		return c.Queue
	}
	return c.Queue + "-" + strconv.Itoa(worker%c.Queues)
}

func (c *Config) tag(worker int) int { return worker % c.Tags }

// produce sends until the time is over. With a rate, each call has its turn on a
// fixed timetable, and its latency counts from that turn.
func (r *Run) produce(worker int, begin int64, h *hists) {
	c := r.svc.sender(r, worker)
	defer c.close()
	var mine []int
	for turn := 0; r.ctx.Err() == nil; turn++ {
		start := r.now()
		if start >= r.until && r.cfg.Rate == 0 {
			return
		}
		if mine = r.seqs(worker, turn, mine); len(mine) == 0 {
			return
		}
		if r.cfg.Rate > 0 {
			start = begin + int64(float64(mine[0])/r.cfg.Rate*1e9)
			if start >= r.until {
				return
			}
			if d := start - r.now(); d > 0 {
				time.Sleep(time.Duration(d))
			}
		}
		work := r.now()
		for _, s := range mine {
			atomic.StoreInt64(&r.starts[s], start)
		}
		stored := 0
		err := c.send(mine, func(i int) {
			if i >= 0 && i < len(mine) {
				stored++
				for _, v := range r.books {
					v.SendOK(mine[i])
				}
			}
		})
		end := r.now()
		h.send.Record(end - start)
		h.sendWork.Record(end - work)
		r.lastMove.Store(end)
		if err == nil && stored < len(mine) {
			err = fmt.Errorf("%d of %d entries were not named in the answer", len(mine)-stored, len(mine))
		}
		if err != nil {
			r.fail("send", err)
			for _, s := range mine {
				for _, v := range r.books {
					v.SendFailed(s)
				}
			}
		}
	}
}

// finished tells whether every stored message was received and deleted, under
// each tag.
func (r *Run) finished() bool {
	if !r.sendDone.Load() {
		return false
	}
	for _, v := range r.books {
		if v.Unique.Load() < v.Acked.Load() || v.Deleted.Load() < v.Acked.Load() {
			return false
		}
	}
	return true
}

func (r *Run) consume(worker int, h *hists) {
	c := r.svc.receiver(r, worker)
	defer c.close()
	book := r.books[r.cfg.tag(worker)]
	var mine []int
	for r.ctx.Err() == nil && !r.finished() {
		start := r.now()
		msgs, err := c.receive(r.cfg.Batch, r.cfg.Wait)
		end := r.now()
		if err != nil {
			r.fail("receive", err)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if len(msgs) == 0 {
			r.emptyPoll.Add(1)
			if r.sendDone.Load() && r.now()-r.lastMove.Load() > int64(r.idle) {
				return
			}
			if end-start < int64(2*time.Millisecond) {
				time.Sleep(2 * time.Millisecond) // a server that does not wait is not to be spun on
			}
			continue
		}
		h.recv.Record(end - start)
		r.lastMove.Store(end)
		mine = r.received(book, msgs, start, end, mine[:0], h)
		start = r.now()
		var gone []int
		err = c.remove(msgs, func(i int) {
			if i >= 0 && i < len(mine) && mine[i] >= 0 {
				gone = append(gone, mine[i])
			}
		})
		end = r.now()
		for _, seq := range gone {
			book.DeleteOK(seq, end)
		}
		h.del.Record(end - start)
		if err != nil {
			r.fail("delete", err)
		}
		for {
			old := r.lastDel.Load()
			if end <= old || r.lastDel.CompareAndSwap(old, end) {
				break
			}
		}
	}
}

// received writes an answer into the book, and returns the sequence numbers of its
// messages, -1 for what is not of this run.
func (r *Run) received(book *Verifier, msgs []Message, start, end int64, mine []int, h *hists) []int {
	for _, m := range msgs {
		seq, ours, intact := r.bodies.Parse(m.Body)
		if !ours {
			book.Foreign()
			seq = -1
		} else if book.Received(seq, intact, start) {
			h.e2e.Record(end - atomic.LoadInt64(&r.starts[seq]))
		}
		mine = append(mine, seq)
	}
	return mine
}

// fan runs n workers, each with histograms of its own, and returns the sum.
func fan(n int, work func(i int, h *hists)) *hists {
	all := make([]*hists, n)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = newHists()
		wg.Add(1)
		go func() { defer wg.Done(); work(i, all[i]) }()
	}
	wg.Wait()
	sum := newHists()
	for _, h := range all {
		sum.merge(h)
	}
	return sum
}

// load sends and receives at once, until the last delete.
func (r *Run) load() *Report {
	began := r.now()
	begin := began + int64(20*time.Millisecond)
	r.until = began + int64(r.cfg.Seconds*1e9)
	var sent *hists
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		sent = fan(r.cfg.Producers, func(i int, h *hists) { r.produce(i, begin, h) })
		r.lastMove.Store(r.now())
		r.sendDone.Store(true)
	}()
	h := fan(r.cfg.Consumers, func(i int, h *hists) { r.consume(i, h) })
	wg.Wait()
	h.merge(sent)
	return r.report(float64(max(r.lastDel.Load(), began)-began)/1e9, h)
}

// leftover receives what the queues still hold; everything should be gone, so
// whatever comes is noted as a duplicate (or as late).
func (r *Run) leftover() {
	for worker := range min(r.cfg.Consumers, r.cfg.Queues*r.cfg.Tags) {
		c := r.svc.receiver(r, worker)
		for empty, tries := 0, 0; empty < 2 && tries < 200 && r.ctx.Err() == nil; tries++ {
			start := r.now()
			msgs, err := c.receive(10, 0)
			if err != nil {
				r.fail("last look", err)
				break
			}
			if len(msgs) == 0 {
				empty++
			}
			r.received(r.books[r.cfg.tag(worker)], msgs, start, start, nil, newHists())
		}
		c.close()
	}
}
