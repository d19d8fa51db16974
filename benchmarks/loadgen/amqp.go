//go:build amqp

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// prefetch is how many batches a receiver may hold: RabbitMQ sends before it is
// asked, and with one batch it would wait for each ack.
const prefetch = 10

// amqpService is RabbitMQ: a quorum queue, publisher confirms, acks by message.
// One queue or several; it has no tags.
type amqpService struct {
	url    string
	queues []string
}

func newAMQP(endpoint string) (service, int, error) {
	u, err := amqp.ParseURI(endpoint)
	if err != nil {
		return nil, 0, err
	}
	if ip := net.ParseIP(u.Host); ip == nil || !ip.IsLoopback() {
		return nil, 0, fmt.Errorf("endpoint %q: this generator loads loopback addresses only", endpoint)
	}
	return &amqpService{url: endpoint}, 100, nil
}

func (s *amqpService) link() (*amqpLink, error) {
	c, err := amqp.Dial(s.url)
	if err != nil {
		return nil, err
	}
	ch, err := c.Channel()
	return &amqpLink{c: c, ch: ch}, err
}

func (s *amqpService) open(cfg Config) error {
	l, err := s.link()
	if err != nil {
		return err
	}
	defer l.close()
	s.queues = nil
	for i := range cfg.Queues {
		name := cfg.queue(i)
		if _, err := l.ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		s.queues = append(s.queues, name)
	}
	s.empty()
	return nil
}

func (s *amqpService) empty() {
	if l, err := s.link(); err == nil {
		defer l.close()
		for _, name := range s.queues {
			l.ch.QueuePurge(name, false)
		}
	}
}

func (s *amqpService) sender(r *Run, worker int) link {
	l, err := s.link()
	if err == nil {
		err = l.ch.Confirm(false)
	}
	return l.of(r, worker, err)
}

func (s *amqpService) receiver(r *Run, worker int) link {
	l, err := s.link()
	if err == nil {
		err = l.ch.Qos(r.cfg.Batch*prefetch, 0, false)
	}
	if err == nil {
		l.came, err = l.ch.Consume(r.cfg.queue(worker), "", false, false, false, false, nil)
	}
	return l.of(r, worker, err)
}

type amqpLink struct {
	c    *amqp.Connection
	ch   *amqp.Channel
	came <-chan amqp.Delivery
	r    *Run
	to   string
	w    []byte
	got  []amqp.Delivery
	msgs []Message
}

func (l *amqpLink) of(r *Run, worker int, err error) link {
	if err != nil {
		r.fail("connect", err)
		r.abort()
		return &amqpLink{r: r}
	}
	l.r, l.to = r, r.cfg.queue(worker)
	return l
}

func (l *amqpLink) send(seqs []int, done func(i int)) error {
	if l.ch == nil {
		return amqp.ErrClosed
	}
	waits := make([]*amqp.DeferredConfirmation, len(seqs))
	for i, seq := range seqs {
		body := l.r.bodies.Append(nil, seq)
		wait, err := l.ch.PublishWithDeferredConfirmWithContext(context.Background(), "", l.to, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			return err
		}
		waits[i] = wait
	}
	for i, wait := range waits {
		stored, err := wait.WaitContext(l.r.ctx)
		if err != nil {
			return err
		}
		if stored {
			done(i)
		}
	}
	return nil
}

// receive waits for one message, and takes what else is there.
func (l *amqpLink) receive(most, wait int) ([]Message, error) {
	if l.ch == nil {
		return nil, amqp.ErrClosed
	}
	l.got, l.msgs = l.got[:0], l.msgs[:0]
	end := time.NewTimer(time.Duration(wait)*time.Second + 50*time.Millisecond)
	defer end.Stop()
	for len(l.got) < most {
		var d amqp.Delivery
		open := true
		if len(l.got) == 0 {
			select {
			case d, open = <-l.came:
			case <-end.C:
				return nil, nil
			}
		} else {
			select {
			case d, open = <-l.came:
			default:
				return l.msgs, nil
			}
		}
		if !open {
			return nil, amqp.ErrClosed
		}
		l.got = append(l.got, d)
		l.msgs = append(l.msgs, Message{Body: d.Body})
	}
	return l.msgs, nil
}

// remove acks one by one. RabbitMQ does not answer acks: done is what was written.
func (l *amqpLink) remove(msgs []Message, done func(i int)) error {
	for i := range msgs {
		if err := l.got[i].Ack(false); err != nil {
			return err
		}
		done(i)
	}
	return nil
}

func (l *amqpLink) close() {
	if l.c != nil {
		l.c.Close()
	}
}
