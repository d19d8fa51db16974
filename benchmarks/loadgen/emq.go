package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// emq is Xiaomi EMQ over the binary protocol of Thrift, written and read by hand
// for the same reason as the JSON of the others.
type emq struct{}

const (
	emqQueues   = "/v1/api/queue"
	emqMessages = "/v1/api/message"

	tStop   = 0
	tBool   = 2
	tByte   = 3
	tDouble = 4
	tI16    = 6
	tI32    = 8
	tI64    = 10
	tString = 11
	tStruct = 12
	tMap    = 13
	tSet    = 14
	tList   = 15

	replyKind  = 2
	codeExists = 4
	deepest    = 16
)

var errThrift = errors.New("unexpected Thrift")

// Writing: a call has one argument, a struct with the number 1.

func tCall(w []byte, method string) []byte {
	w = append(w[:0], 0x80, 0x01, 0x00, 0x01)
	w = tText(w, method)
	w = append(w, 0, 0, 0, 0)
	return tField(w, tStruct, 1)
}

func tField(w []byte, kind, number byte) []byte { return append(w, kind, 0, number) }

func tText(w []byte, text string) []byte {
	w = binary.BigEndian.AppendUint32(w, uint32(len(text)))
	return append(w, text...)
}

func tBytes(w []byte, number byte, text []byte) []byte {
	w = binary.BigEndian.AppendUint32(tField(w, tString, number), uint32(len(text)))
	return append(w, text...)
}

func tNumber(w []byte, number byte, value int) []byte {
	return binary.BigEndian.AppendUint32(tField(w, tI32, number), uint32(value))
}

func tStructs(w []byte, number byte, count int) []byte {
	return binary.BigEndian.AppendUint32(append(tField(w, tList, number), tStruct), uint32(count))
}

// body appends a message's body as field `number`; its length is known afterwards.
func (r *Run) thriftBody(w []byte, number byte, seq int) []byte {
	w = tField(w, tString, number)
	at := len(w)
	w = r.bodies.Append(append(w, 0, 0, 0, 0), seq)
	binary.BigEndian.PutUint32(w[at:], uint32(len(w)-at-4))
	return w
}

func (emq) open(ep *Endpoint, cfg Config) ([]byte, error) {
	ep.contentType = "application/x-thrift-binary"
	c := &Conn{ep: ep}
	defer c.Close()
	w := tBytes(tCall(nil, "createQueue"), 1, []byte(cfg.Queue))
	w = tNumber(tField(w, tStruct, 2), 2, cfg.Visibility)
	status, resp, err := c.Do(emqQueues, append(w, tStop, tStop, tStop))
	if err != nil || status != 200 {
		return nil, fmt.Errorf("create queue: status %d %.300s %v", status, resp, err)
	}
	if code, err := answer(resp, nil); err != nil || (code != "" && code != strconv.Itoa(codeExists)) {
		return nil, fmt.Errorf("create queue: code %s %v", code, err)
	}
	return []byte(cfg.Queue), nil
}

func (emq) purge(url []byte) (string, []byte) {
	return emqQueues, append(tBytes(tCall(nil, "purgeQueue"), 1, url), tStop, tStop)
}

func (emq) send(w []byte, r *Run, url []byte, batch int, seqs []int) (string, []byte) {
	if batch == 1 {
		w = r.thriftBody(tBytes(tCall(w, "sendMessage"), 1, url), 2, seqs[0])
		return emqMessages, append(w, tStop, tStop)
	}
	w = tStructs(tBytes(tCall(w, "sendMessageBatch"), 1, url), 2, len(seqs))
	for i, s := range seqs {
		w = tBytes(w, 1, strconv.AppendInt(nil, int64(i), 10))
		w = append(r.thriftBody(w, 2, s), tStop)
	}
	return emqMessages, append(w, tStop, tStop)
}

func (emq) receive(url []byte, most, wait int) (string, []byte) {
	w := tNumber(tNumber(tBytes(tCall(nil, "receiveMessage"), 1, url), 2, most), 3, wait)
	return emqMessages, append(w, tStop, tStop)
}

func (emq) remove(w []byte, url []byte, msgs []Message, batch int) (string, []byte) {
	if batch == 1 {
		return emqMessages, append(tBytes(tBytes(tCall(w, "deleteMessage"), 1, url), 2, msgs[0].Receipt), tStop, tStop)
	}
	w = tStructs(tBytes(tCall(w, "deleteMessageBatch"), 1, url), 2, len(msgs))
	for _, m := range msgs {
		w = append(tBytes(w, 1, m.Receipt), tStop)
	}
	return emqMessages, append(w, tStop, tStop)
}

// Reading.

func (emq) sent(resp []byte, batch int, ok func(id int)) (failed int, code string, err error) {
	if batch == 1 {
		if code, err = answer(resp, nil); code == "" && err == nil {
			ok(0)
		} else {
			failed = 1
		}
		return
	}
	return results(resp, func(i int, id []byte) {
		if n, err := strconv.Atoi(string(id)); err == nil {
			ok(n)
		}
	})
}

// removed: what is done is named by its handle, and which entry that was is not
// known here. So when one has failed, none counts as done.
func (e emq) removed(resp []byte, batch int, ok func(id int)) (int, string, error) {
	if batch == 1 {
		return e.sent(resp, 1, ok)
	}
	done := 0
	failed, code, err := results(resp, func(int, []byte) { done++ })
	for i := 0; i < done && failed == 0 && err == nil; i++ {
		ok(i)
	}
	return failed, code, err
}

// results reads the answer of a batch: done gets the place and the name of each
// entry of successful.
func results(resp []byte, done func(i int, name []byte)) (failed int, code string, err error) {
	code, err = answer(resp, func(t *thrift, kind byte) error {
		return t.fields(kind, func(number int, kind byte) error {
			n := 0
			return t.list(kind, func(kind byte) error {
				if number == 2 {
					failed++
					return t.skip(kind)
				}
				name, err := t.first(kind)
				if err == nil {
					done(n, name)
				}
				n++
				return err
			})
		})
	})
	return
}

func (emq) received(resp []byte, into []Message) ([]Message, error) {
	into = into[:0]
	code, err := answer(resp, func(t *thrift, kind byte) error {
		return t.list(kind, func(kind byte) error {
			var m Message
			err := t.fields(kind, func(number int, kind byte) (err error) {
				switch number {
				case 2:
					m.Receipt, err = t.text(kind)
				case 3:
					m.Body, err = t.text(kind)
				default:
					err = t.skip(kind)
				}
				return
			})
			into = append(into, m)
			return err
		})
	})
	if err == nil && code != "" {
		err = fmt.Errorf("receive: code %s", code)
	}
	return into, err
}

// answer reads a reply: success gets its field 0; code is that of its exception,
// "" = there is none.
func answer(resp []byte, success func(t *thrift, kind byte) error) (code string, err error) {
	t := &thrift{b: resp}
	head, err := t.number(4)
	if err == nil && head != 0x80010000|replyKind {
		return "", fmt.Errorf("%w: head %x", errThrift, head)
	}
	if _, err = t.text(tString); err == nil {
		_, err = t.number(4)
	}
	if err != nil {
		return "", err
	}
	err = t.fields(tStruct, func(number int, kind byte) error {
		switch {
		case number == 0 && success != nil:
			return success(t, kind)
		case number == 1:
			return t.fields(kind, func(number int, kind byte) error {
				if number != 1 || kind != tI32 {
					return t.skip(kind)
				}
				n, err := t.number(4)
				code = strconv.Itoa(int(n))
				return err
			})
		}
		return t.skip(kind)
	})
	return code, err
}

// A thrift reads the binary protocol in place.
type thrift struct {
	b    []byte
	deep int
}

func (t *thrift) take(n int) ([]byte, error) {
	if n < 0 || n > len(t.b) {
		return nil, fmt.Errorf("%w: end", errThrift)
	}
	taken := t.b[:n]
	t.b = t.b[n:]
	return taken, nil
}

func (t *thrift) number(width int) (n uint64, err error) {
	b, err := t.take(width)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return
}

func (t *thrift) text(kind byte) ([]byte, error) {
	if kind != tString {
		return nil, fmt.Errorf("%w: type %d for a text", errThrift, kind)
	}
	n, err := t.number(4)
	if err != nil {
		return nil, err
	}
	return t.take(int(n))
}

func (t *thrift) fields(kind byte, field func(number int, kind byte) error) error {
	if t.deep++; kind != tStruct || t.deep > deepest {
		return fmt.Errorf("%w: type %d for a struct, or too deep", errThrift, kind)
	}
	defer func() { t.deep-- }()
	for {
		kind, err := t.number(1)
		if err != nil || kind == tStop {
			return err
		}
		number, err := t.number(2)
		if err == nil {
			err = field(int(number), byte(kind))
		}
		if err != nil {
			return err
		}
	}
}

// first is the first field of a struct, or a bare text.
func (t *thrift) first(kind byte) (name []byte, err error) {
	if kind == tString {
		return t.text(kind)
	}
	err = t.fields(kind, func(number int, kind byte) (err error) {
		if number != 1 {
			return t.skip(kind)
		}
		name, err = t.text(kind)
		return
	})
	return bytes.Clone(name), err
}

func (t *thrift) list(kind byte, item func(kind byte) error) error {
	if kind != tList && kind != tSet {
		return fmt.Errorf("%w: type %d for a list", errThrift, kind)
	}
	of, err := t.number(1)
	if err != nil {
		return err
	}
	n, err := t.number(4)
	for i := uint64(0); i < n && err == nil; i++ {
		err = item(byte(of))
	}
	return err
}

func (t *thrift) skip(kind byte) (err error) {
	switch kind {
	case tBool, tByte:
		_, err = t.take(1)
	case tI16:
		_, err = t.take(2)
	case tI32:
		_, err = t.take(4)
	case tI64, tDouble:
		_, err = t.take(8)
	case tString:
		_, err = t.text(kind)
	case tStruct:
		err = t.fields(kind, func(_ int, kind byte) error { return t.skip(kind) })
	case tList, tSet:
		err = t.list(kind, t.skip)
	case tMap:
		var kinds []byte
		var n uint64
		if kinds, err = t.take(2); err == nil {
			n, err = t.number(4)
		}
		for i := uint64(0); i < n && err == nil; i++ {
			if err = t.skip(kinds[0]); err == nil {
				err = t.skip(kinds[1])
			}
		}
	default:
		err = fmt.Errorf("%w: type %d", errThrift, kind)
	}
	return
}
