package main

import "math"

// Report is what a run says of itself, as JSON.
type Report struct {
	Config   Config  `json:"config"`
	Messages int64   `json:"messages"` // sent, and received and deleted under each tag
	Seconds  float64 `json:"seconds"`  // to the last delete
	Rate     float64 `json:"msgs_per_s"`

	Send       *LatencyStats `json:"send_call,omitempty"`
	SendWork   *LatencyStats `json:"send_call_from_its_own_start,omitempty"`
	Receive    *LatencyStats `json:"receive_call,omitempty"`
	Delete     *LatencyStats `json:"delete_call,omitempty"`
	EndToEnd   *LatencyStats `json:"end_to_end,omitempty"`
	EmptyPolls int64         `json:"empty_receives"`

	Book       Verdict  `json:"book"`
	CallErrors int64    `json:"call_errors"`
	ErrorTexts []string `json:"error_texts,omitempty"`
	TimedOut   bool     `json:"timed_out"`
}

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}

// report is of what the run has measured; finish adds what the book says.
func (r *Run) report(seconds float64, h *hists) *Report {
	n := int64(math.MaxInt64)
	for _, v := range r.books {
		n = min(n, v.Deleted.Load())
	}
	p := &Report{Config: r.cfg, Messages: n, Seconds: round(seconds, 4), EmptyPolls: r.emptyPoll.Load(),
		Send: h.send.Stats(), SendWork: h.sendWork.Stats(), Receive: h.recv.Stats(), Delete: h.del.Stats(), EndToEnd: h.e2e.Stats()}
	if seconds > 0 {
		p.Rate = round(float64(n)/seconds, 1)
	}
	return p
}

func (r *Run) finish(p *Report) {
	p.TimedOut = r.ctx.Err() != nil
	p.CallErrors, p.ErrorTexts = r.errs.Load(), r.errTexts
	for i, v := range r.books {
		said := v.Verdict(p.TimedOut)
		if i == 0 {
			p.Book = said
		} else {
			p.Book.add(said)
		}
	}
}
