package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A speech is one HTTP API: how its calls are written and its answers read. The
// target of a call is the X-Amz-Target header, or, when it begins with a slash,
// the path. A batch of 1 uses the calls for single messages where there are some.
type speech interface {
	// open makes the queue, and returns its name in calls.
	open(ep *Endpoint, cfg Config) ([]byte, error)
	send(w []byte, r *Run, url []byte, batch int, seqs []int) (target string, body []byte)
	receive(url []byte, most, wait int) (target string, body []byte)
	remove(w []byte, url []byte, msgs []Message, batch int) (target string, body []byte)
	purge(url []byte) (target string, body []byte)

	// sent and removed call ok with the index of each entry that was done.
	sent(answer []byte, batch int, ok func(id int)) (failed int, code string, err error)
	received(answer []byte, into []Message) ([]Message, error)
	removed(answer []byte, batch int, ok func(id int)) (failed int, code string, err error)
}

// sqs is the Amazon SQS JSON protocol.
type sqs struct{}

func (sqs) open(ep *Endpoint, cfg Config) ([]byte, error) { return openSQS(ep, cfg) }

func (sqs) purge(url []byte) (string, []byte) {
	return "AmazonSQS.PurgeQueue", []byte(fmt.Sprintf(`{"QueueUrl":%s}`, url))
}

func (sqs) send(w []byte, r *Run, url []byte, batch int, seqs []int) (string, []byte) {
	w = append(append(w[:0], `{"QueueUrl":`...), url...)
	if batch == 1 {
		return "AmazonSQS.SendMessage", append(r.sqsEntry(append(w, ','), seqs[0]), '}')
	}
	w = append(w, `,"Entries":[`...)
	for i, seq := range seqs {
		if i > 0 {
			w = append(w, ',')
		}
		w = append(strconv.AppendInt(append(w, `{"Id":"`...), int64(i), 10), `",`...)
		w = append(r.sqsEntry(w, seq), '}')
	}
	return "AmazonSQS.SendMessageBatch", append(w, "]}"...)
}

func (r *Run) sqsEntry(w []byte, seq int) []byte {
	w = append(r.bodies.Append(append(w, `"MessageBody":"`...), seq), '"')
	if r.cfg.Groups > 0 {
		w = strconv.AppendInt(append(w, `,"MessageGroupId":"g`...), int64(r.cfg.groupOf(seq)), 10)
		w = append(append(append(w, `","MessageDeduplicationId":"`...), r.bodies.run...), '-')
		w = append(strconv.AppendInt(w, int64(seq), 10), '"')
	}
	return w
}

func (sqs) sent(answer []byte, batch int, ok func(id int)) (int, string, error) {
	if batch == 1 {
		ok(0)
		return 0, "", nil
	}
	return parseBatch(answer, ok)
}

func (sqs) receive(url []byte, most, wait int) (string, []byte) {
	return "AmazonSQS.ReceiveMessage", []byte(fmt.Sprintf(`{"QueueUrl":%s,"MaxNumberOfMessages":%d,"WaitTimeSeconds":%d}`, url, most, wait))
}

func (sqs) received(answer []byte, into []Message) ([]Message, error) {
	return parseReceive(answer, into)
}

func (sqs) remove(w []byte, url []byte, msgs []Message, batch int) (string, []byte) {
	w = append(w[:0], `{"QueueUrl":`...)
	w = append(w, url...)
	if batch == 1 {
		w = append(w, `,"ReceiptHandle":`...)
		w = appendJSONString(w, msgs[0].Receipt)
		return "AmazonSQS.DeleteMessage", append(w, '}')
	}
	w = append(w, `,"Entries":[`...)
	for i, m := range msgs {
		if i > 0 {
			w = append(w, ',')
		}
		w = append(w, `{"Id":"`...)
		w = strconv.AppendInt(w, int64(i), 10)
		w = append(w, `","ReceiptHandle":`...)
		w = appendJSONString(w, m.Receipt)
		w = append(w, '}')
	}
	return "AmazonSQS.DeleteMessageBatch", append(w, "]}"...)
}

func (s sqs) removed(answer []byte, batch int, ok func(id int)) (int, string, error) {
	return s.sent(answer, batch, ok)
}

// native is Leaseway's own API: paths and plain JSON, batches up to 100, a send
// of several messages is all or none.
type native struct{}

func (native) open(ep *Endpoint, cfg Config) ([]byte, error) {
	c := &Conn{ep: ep}
	defer c.Close()
	req, _ := json.Marshal(map[string]any{"name": cfg.Queue, "lease_seconds": cfg.Visibility, "max_message_bytes": 1 << 20})
	status, resp, err := c.Do("/v1/queues", req)
	if err != nil || (status != 200 && status != 201 && status != 409) {
		return nil, fmt.Errorf("create queue: status %d %.300s %v", status, resp, err)
	}
	return []byte(cfg.Queue), nil
}

func (native) purge(url []byte) (string, []byte) { return path(url, "purge"), nil }

func path(url []byte, verb string) string { return "/v1/queues/" + string(url) + "/" + verb }

func (native) send(w []byte, r *Run, url []byte, batch int, seqs []int) (string, []byte) {
	w = append(w[:0], `{"messages":[`...)
	for i, s := range seqs {
		if i > 0 {
			w = append(w, ',')
		}
		w = append(w, `{"body":"`...)
		w = r.bodies.Append(w, s)
		w = append(w, `"}`...)
	}
	return path(url, "messages"), append(w, "]}"...)
}

func (native) sent(answer []byte, batch int, ok func(id int)) (int, string, error) {
	n, err := entries(answer, "messages", func(int, string) {})
	for i := 0; i < n && err == nil; i++ {
		ok(i)
	}
	return 0, "", err
}

func (native) receive(url []byte, most, wait int) (string, []byte) {
	return path(url, "receive"), []byte(fmt.Sprintf(`{"max":%d,"wait_seconds":%d}`, most, wait))
}

func (native) received(answer []byte, into []Message) ([]Message, error) {
	return parseMessages(answer, into, "messages", "body", "handle")
}

func (native) remove(w []byte, url []byte, msgs []Message, batch int) (string, []byte) {
	w = append(w[:0], `{"handles":[`...)
	for i, m := range msgs {
		if i > 0 {
			w = append(w, ',')
		}
		w = appendJSONString(w, m.Receipt)
	}
	return path(url, "ack"), append(w, "]}"...)
}

func (native) removed(answer []byte, batch int, ok func(id int)) (failed int, code string, err error) {
	_, err = entries(answer, "results", func(i int, status string) {
		if status == "ok" {
			ok(i)
		} else {
			failed++
			code = status
		}
	})
	return
}

// entries counts the objects of a list and tells the status of each.
func entries(answer []byte, list string, each func(i int, status string)) (n int, err error) {
	s := &scanner{b: answer}
	err = s.object(func(k []byte) error {
		if string(k) != list {
			return s.skip()
		}
		return s.array(func() error {
			status := ""
			err := s.object(func(k []byte) error {
				if !bytes.Equal(k, []byte("status")) {
					return s.skip()
				}
				v, err := s.str()
				status = string(v)
				return err
			})
			each(n, status)
			n++
			return err
		})
	})
	return
}

// speechOf returns the speech of that name and the largest batch it takes.
func speechOf(name string) (speech, int, error) {
	switch strings.ToLower(name) {
	case "sqs":
		return sqs{}, 10, nil
	case "native":
		return native{}, 100, nil
	case "emq":
		return emq{}, 100, nil
	}
	return nil, 0, fmt.Errorf("unknown API %q: sqs, native or emq", name)
}
