package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRequestsGoOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(append([]byte(r.URL.Path+" "), body...))
	}))
	defer server.Close()
	ep, err := NewEndpoint(server.URL, "/", &Signer{}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{ep: ep}
	defer c.Close()
	for range 2 {
		status, body, err := c.Do("/v1/queues", []byte("x"))
		if err != nil || status != 200 || string(body) != "/v1/queues x" {
			t.Fatalf("status %d, body %q, error %v", status, body, err)
		}
	}
	if c.Dials != 1 {
		t.Fatalf("%d connections for two requests", c.Dials)
	}
}
