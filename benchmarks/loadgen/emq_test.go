package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// fakeEMQ is a queue that speaks Thrift; it refuses to delete handle "h-<refuse>".
type fakeEMQ struct {
	mu     sync.Mutex
	ready  []string
	n      int
	refuse int
	drop   int // every so many-th message vanishes; 0 = none
	calls  map[string]int
}

// told reads a request: its method, and what its argument has by number; a list
// of structs is a list of such maps.
func told(b []byte) (string, map[int]any) {
	t := &thrift{b: b[4:]}
	name, _ := t.text(tString)
	t.number(4)
	var in map[int]any
	t.fields(tStruct, func(_ int, kind byte) error {
		in = object(t, kind)
		return nil
	})
	return string(name), in
}

func object(t *thrift, kind byte) map[int]any {
	found := map[int]any{}
	t.fields(kind, func(number int, kind byte) error {
		switch kind {
		case tString:
			text, err := t.text(kind)
			found[number] = string(text)
			return err
		case tI32:
			n, err := t.number(4)
			found[number] = int(n)
			return err
		case tList:
			var list []map[int]any
			err := t.list(kind, func(kind byte) error {
				list = append(list, object(t, kind))
				return nil
			})
			found[number] = list
			return err
		}
		return t.skip(kind)
	})
	return found
}

func (q *fakeEMQ) put(body string) {
	q.n++
	if q.drop == 0 || q.n%q.drop != 0 {
		q.ready = append(q.ready, body)
	}
}

func (q *fakeEMQ) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked, _ := io.ReadAll(r.Body)
	method, in := told(asked)
	q.calls[method]++
	out := tText([]byte{0x80, 0x01, 0x00, replyKind}, method)
	out = append(out, 0, 0, 0, 0)
	switch method {
	case "createQueue":
		out = append(tNumber(tField(out, tStruct, 1), 1, codeExists), tStop)
	case "sendMessage":
		q.put(in[2].(string))
		out = append(tBytes(tField(out, tStruct, 0), 1, []byte("id")), tStop)
	case "sendMessageBatch":
		entries := in[2].([]map[int]any)
		out = tStructs(tField(out, tStruct, 0), 1, len(entries))
		for _, entry := range entries {
			q.put(entry[2].(string))
			out = append(tBytes(tBytes(out, 1, []byte(entry[1].(string))), 2, []byte("id")), tStop)
		}
		out = append(out, tStop)
	case "receiveMessage":
		some := q.ready[:min(len(q.ready), in[2].(int))]
		out = tStructs(out, 0, len(some))
		for i, body := range some {
			handle := fmt.Sprint("h-", q.n-len(q.ready)+i)
			out = tBytes(tBytes(tBytes(out, 1, []byte("id")), 2, []byte(handle)), 3, []byte(body))
			out = append(tField(out, tMap, 4), tString, tString, 0, 0, 0, 1)
			out = append(tText(tText(out, "k"), "v"), tStop)
		}
		q.ready = q.ready[len(some):]
	case "deleteMessageBatch":
		var done, failed []byte
		n, bad := 0, 0
		for _, entry := range in[2].([]map[int]any) {
			handle := entry[1].(string)
			if handle == fmt.Sprint("h-", q.refuse) {
				failed = append(tNumber(tField(tBytes(failed, 1, []byte(handle)), tStruct, 2), 1, 11), tStop, tStop)
				bad++
			} else {
				done = tText(done, handle)
				n++
			}
		}
		out = append(tField(tField(out, tStruct, 0), tList, 1), tString)
		out = append(binary.BigEndian.AppendUint32(out, uint32(n)), done...)
		out = append(append(tStructs(out, 2, bad), failed...), tStop)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(out)+1))
	w.Write(append(out, tStop))
}

func emqRun(t *testing.T, q *fakeEMQ, batch int) *Report {
	t.Helper()
	q.calls = map[string]int{}
	_, p := against(t, q, emq{}, Config{Producers: 3, Consumers: 3, Batch: batch})
	return p
}

func TestEMQAgainstSoundQueue(t *testing.T) {
	for _, batch := range []int{1, 10, 100} {
		q := &fakeEMQ{refuse: -1}
		p := emqRun(t, q, batch)
		if v := p.Book; v.Bad() || v.Acked != 505 || v.Deleted != 505 || p.CallErrors != 0 {
			t.Errorf("batch %d: %+v", batch, p)
		}
		if sends := q.calls["sendMessage"] + q.calls["sendMessageBatch"]; sends != (505+batch-1)/batch || q.calls["purgeQueue"] == 0 {
			t.Errorf("batch %d: %v", batch, q.calls)
		}
	}
}

func TestEMQFindsLossAndRefusedDeletes(t *testing.T) {
	if v := emqRun(t, &fakeEMQ{refuse: -1, drop: 100}, 10).Book; v.Lost != 5 {
		t.Errorf("%+v", v)
	}
	p := emqRun(t, &fakeEMQ{refuse: 7}, 10)
	if v := p.Book; v.Deleted >= 505 || p.CallErrors != 1 {
		t.Errorf("%+v", p)
	}
}

func TestThriftThatIsNoneIsAnError(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("HTTP"), {0x80, 1, 0, 2, 0xff, 0xff, 0xff, 0xff}, append([]byte{0x80, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0}, tStruct)} {
		if _, err := answer(b, nil); err == nil {
			t.Errorf("%x", b)
		}
	}
}
