package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// httpService is a service that is spoken to by requests and answers: each API is
// a speech.
type httpService struct {
	ep     *Endpoint
	say    speech
	places map[string][]byte // queue (or tag of one) -> its name in calls
}

// tagged is the name of a queue's tag.
func tagged(queue string, tag int) string {
	if tag == 0 {
		return queue
	}
	return queue + "@tag" + strconv.Itoa(tag)
}

func (s *httpService) open(cfg Config) error {
	s.places = map[string][]byte{}
	for i := range cfg.Queues {
		for tag := range cfg.Tags {
			one := cfg
			one.Queue = tagged(cfg.queue(i), tag)
			place, err := s.say.open(s.ep, one)
			if err != nil {
				return err
			}
			s.places[one.Queue] = place
		}
	}
	s.empty()
	return nil
}

func (s *httpService) empty() {
	c := &Conn{ep: s.ep}
	defer c.Close()
	for name, place := range s.places {
		if !strings.Contains(name, "@") { // a queue is emptied under all its tags
			c.Do(s.say.purge(place))
		}
	}
}

func (s *httpService) sender(r *Run, worker int) link {
	return &httpLink{c: Conn{ep: s.ep}, r: r, say: s.say, place: s.places[r.cfg.queue(worker)]}
}

func (s *httpService) receiver(r *Run, worker int) link {
	place := s.places[tagged(r.cfg.queue(worker), r.cfg.tag(worker))]
	return &httpLink{c: Conn{ep: s.ep}, r: r, say: s.say, place: place}
}

type httpLink struct {
	c     Conn
	r     *Run
	say   speech
	place []byte
	w     []byte
	msgs  []Message
}

func (l *httpLink) do(target string, body []byte) ([]byte, error) {
	status, answer, err := l.c.Do(target, body)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d %.200s", status, answer)
	}
	return answer, err
}

func (l *httpLink) send(seqs []int, done func(i int)) error {
	target, body := l.say.send(l.w, l.r, l.place, l.r.cfg.Batch, seqs)
	l.w = body
	answer, err := l.do(target, body)
	if err != nil {
		return err
	}
	failed, code, err := l.say.sent(answer, l.r.cfg.Batch, done)
	return refused(failed, code, err)
}

func (l *httpLink) receive(most, wait int) (msgs []Message, err error) {
	answer, err := l.do(l.say.receive(l.place, most, wait))
	if err == nil {
		l.msgs, err = l.say.received(answer, l.msgs)
	}
	return l.msgs, err
}

func (l *httpLink) remove(msgs []Message, done func(i int)) error {
	target, body := l.say.remove(l.w, l.place, msgs, l.r.cfg.Batch)
	l.w = body
	answer, err := l.do(target, body)
	if err != nil {
		return err
	}
	failed, code, err := l.say.removed(answer, l.r.cfg.Batch, done)
	return refused(failed, code, err)
}

func (l *httpLink) close() { l.c.Close() }

func refused(failed int, code string, err error) error {
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d entries refused (%s)", failed, code)
	}
	return err
}

// openSQS makes a queue and returns its URL as a JSON string.
func openSQS(ep *Endpoint, cfg Config) ([]byte, error) {
	c := &Conn{ep: ep}
	defer c.Close()
	attributes := map[string]string{"VisibilityTimeout": strconv.Itoa(cfg.Visibility)}
	if strings.Contains(cfg.Queue, "@") {
		attributes = map[string]string{}
	}
	if cfg.Groups > 0 {
		attributes["FifoQueue"] = "true"
	}
	req, _ := json.Marshal(map[string]any{"QueueName": cfg.Queue, "Attributes": attributes})
	status, answer, err := c.Do("AmazonSQS.CreateQueue", req)
	if err == nil && status != 200 && strings.Contains(string(answer), "Exist") {
		req, _ = json.Marshal(map[string]string{"QueueName": cfg.Queue})
		status, answer, err = c.Do("AmazonSQS.GetQueueUrl", req)
	}
	if err != nil || status != 200 {
		return nil, fmt.Errorf("CreateQueue: status %d %.300s %v", status, answer, err)
	}
	var out struct{ QueueUrl string }
	if err := json.Unmarshal(answer, &out); err != nil || out.QueueUrl == "" {
		return nil, fmt.Errorf("CreateQueue answered %.300s", answer)
	}
	return json.Marshal(out.QueueUrl)
}

func newHTTP(api, endpoint, key, secret string, limit time.Duration) (service, int, error) {
	say, most, err := speechOf(api)
	if err != nil {
		return nil, 0, err
	}
	signer := &Signer{Real: secret != "", Key: key, Secret: secret, Region: "us-east-1"}
	if !signer.Real {
		signer.Key, signer.Secret = "test", "test"
	}
	ep, err := NewEndpoint(endpoint, "/", signer, limit)
	return &httpService{ep: ep, say: say}, most, err
}
