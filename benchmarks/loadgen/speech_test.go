package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
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

// runAgainst sends 505 messages to a queue that speaks so, and receives them all.
func runAgainst(t *testing.T, q http.Handler, said speech, batch int) *Run {
	t.Helper()
	srv := httptest.NewServer(q)
	t.Cleanup(srv.Close)
	ep, err := NewEndpoint(srv.URL, "/", &Signer{}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Queue: "q", Producers: 3, Consumers: 3, Messages: 505, Body: 200}
	url, err := said.open(ep, cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	r, err := newRun(ctx, cancel, cfg, ep, said, url, cfg.Messages, 200*time.Millisecond, NewProcTree(nil))
	if err != nil {
		t.Fatal(err)
	}
	r.sendAll(batch)
	r.drainAll(batch, 0)
	r.leftover()
	return r
}

func nativeRun(t *testing.T, q *fakeNative, batch int) *Run {
	t.Helper()
	q.paths = map[string]int{}
	return runAgainst(t, q, native{}, batch)
}

func TestNativeAgainstSoundQueue(t *testing.T) {
	for _, batch := range []int{1, 10, 100} {
		q := &fakeNative{refuse: -1}
		r := nativeRun(t, q, batch)
		v := r.v.Verdict(false)
		if v.Bad() || v.Acked != 505 || v.Deleted != 505 || r.errs.Load() != 0 {
			t.Errorf("batch %d: %+v, errors %v", batch, v, r.errTexts)
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
	if v := nativeRun(t, &fakeNative{refuse: -1, drop: 100}, 10).v.Verdict(false); v.Lost != 5 {
		t.Errorf("%+v", v)
	}
	r := nativeRun(t, &fakeNative{refuse: 7}, 10)
	if v := r.v.Verdict(false); v.Deleted != 504 || r.errs.Load() != 1 {
		t.Errorf("%+v, errors %v", v, r.errTexts)
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
