package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// fakeNative is a queue that speaks the native API; it says stale to every ack
// of handle "h-<refuse>".
type fakeNative struct {
	mu     sync.Mutex
	ready  []string
	n      int
	refuse int
	drop   int // every so many-th message vanishes; 0 = none
	paths  map[string]int
}

func (q *fakeNative) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paths[r.Method+" "+r.URL.Path]++
	var in struct {
		Messages []struct{ Body string }
		Max      int
		Handles  []string
	}
	json.NewDecoder(r.Body).Decode(&in)
	list := []map[string]any{}
	switch r.URL.Path {
	case "/v1/queues":
		w.WriteHeader(201)
	case "/v1/queues/q/purge":
		w.WriteHeader(204)
	case "/v1/queues/q/messages":
		for _, m := range in.Messages {
			q.n++
			if q.drop == 0 || q.n%q.drop != 0 {
				q.ready = append(q.ready, m.Body)
			}
			list = append(list, map[string]any{"id": "i"})
		}
		json.NewEncoder(w).Encode(map[string]any{"messages": list})
	case "/v1/queues/q/receive":
		for len(list) < in.Max && len(q.ready) > 0 {
			list = append(list, map[string]any{"attributes": map[string]any{}, "body": q.ready[0], "handle": fmt.Sprint("h-", q.n-len(q.ready))})
			q.ready = q.ready[1:]
		}
		json.NewEncoder(w).Encode(map[string]any{"messages": list})
	case "/v1/queues/q/ack":
		for _, h := range in.Handles {
			status := "ok"
			if h == fmt.Sprint("h-", q.refuse) {
				status = "stale"
			}
			list = append(list, map[string]any{"handle": h, "status": status})
		}
		json.NewEncoder(w).Encode(map[string]any{"results": list})
	default:
		w.WriteHeader(404)
	}
}

func nativeRun(t *testing.T, q *fakeNative, batch int) *Report {
	t.Helper()
	q.paths = map[string]int{}
	_, p := against(t, q, native{}, Config{Producers: 3, Consumers: 3, Batch: batch})
	return p
}

func TestNativeAgainstSoundQueue(t *testing.T) {
	for _, batch := range []int{1, 10, 100} {
		q := &fakeNative{refuse: -1}
		p := nativeRun(t, q, batch)
		if v := p.Book; v.Bad() || v.Acked != 505 || v.Deleted != 505 || p.CallErrors != 0 {
			t.Errorf("batch %d: %+v", batch, p)
		}
		if sends := q.paths["POST /v1/queues/q/messages"]; sends != (505+batch-1)/batch {
			t.Errorf("batch %d: %d sends", batch, sends)
		}
		for path := range q.paths {
			if !strings.HasPrefix(path, "POST /v1/queues") {
				t.Errorf("called %s", path)
			}
		}
	}
}

func TestNativeFindsLossAndRefusedAcks(t *testing.T) {
	if v := nativeRun(t, &fakeNative{refuse: -1, drop: 100}, 10).Book; v.Lost != 5 {
		t.Errorf("%+v", v)
	}
	p := nativeRun(t, &fakeNative{refuse: 7}, 10)
	if v := p.Book; v.Deleted != 504 || p.CallErrors != 1 {
		t.Errorf("%+v", p)
	}
}

func TestSpeeches(t *testing.T) {
	if _, most, err := speechOf("native"); err != nil || most != 100 {
		t.Errorf("%d %v", most, err)
	}
	if _, most, err := speechOf("sqs"); err != nil || most != 10 {
		t.Errorf("%d %v", most, err)
	}
	if _, _, err := speechOf("soap"); err == nil {
		t.Error("an API that is none must be refused")
	}
}
