//go:build !amqp

package main

import "errors"

func newAMQP(string) (service, int, error) {
	return nil, 0, errors.New("this build has no AMQP: go build -tags amqp")
}
