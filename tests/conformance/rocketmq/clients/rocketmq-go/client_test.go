// RocketMQ's own Go client on a service: what it sends, and what it makes of what it receives.
package rocketmq

import (
	"context"
	"os"
	"testing"
	"time"

	client "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const bodies = 40

func config(group string) *client.Config {
	key := &credentials.SessionCredentials{AccessKey: os.Getenv("ROCKETMQ_KEY"), AccessSecret: os.Getenv("ROCKETMQ_SECRET")}
	return &client.Config{Endpoint: os.Getenv("ROCKETMQ_ENDPOINTS"), ConsumerGroup: group, Credentials: key}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func producer(t *testing.T, topic string, options ...client.ProducerOption) client.Producer {
	made, err := client.NewProducer(config(""), append(options, client.WithTopics(topic))...)
	must(t, err)
	must(t, made.Start())
	t.Cleanup(func() { _ = made.GracefulStop() })
	return made
}

func message(topic string, body string) *client.Message {
	made := &client.Message{Topic: topic, Body: []byte(body)}
	made.SetTag("tag")
	made.SetKeys("k1", "k2")
	made.AddProperty("colour", "red")
	return made
}

// One in sixteen checksums of the kind CRC32 begins with a zero, which this client leaves out.
func TestSimpleConsumer(t *testing.T) {
	topic := os.Getenv("ROCKETMQ_TOPIC")
	sender := producer(t, topic)
	for number := 0; number < bodies; number++ {
		_, err := sender.Send(context.Background(), message(topic, string(rune('A'+number))))
		must(t, err)
	}
	consumer, err := client.NewSimpleConsumer(config("go-simple"), client.WithSimpleAwaitDuration(3*time.Second),
		client.WithSimpleSubscriptionExpressions(map[string]*client.FilterExpression{topic: client.NewFilterExpression("tag")}))
	must(t, err)
	must(t, consumer.Start())
	defer consumer.GracefulStop()
	seen := map[string]bool{}
	for end := time.Now().Add(30 * time.Second); len(seen) < bodies && time.Now().Before(end); {
		got, err := consumer.Receive(context.Background(), 32, 20*time.Second)
		if err != nil {
			continue // there is no message
		}
		for _, one := range got {
			if *one.GetTag() != "tag" || len(one.GetKeys()) != 2 || one.GetProperties()["colour"] != "red" || one.GetDeliveryAttempt() != 1 {
				t.Fatalf("not what was sent: %v", one)
			}
			if one.GetBornTimestamp() == nil || time.Since(*one.GetBornTimestamp()) > time.Hour || one.GetMessageId() == "" {
				t.Fatalf("no time or id: %v", one)
			}
			must(t, consumer.Ack(context.Background(), one))
			seen[string(one.GetBody())] = true
		}
	}
	if len(seen) != bodies {
		t.Fatalf("received %d of %d", len(seen), bodies)
	}
}

// The push consumer drops what it calls corrupted.
func TestPushConsumer(t *testing.T) {
	topic := os.Getenv("ROCKETMQ_TOPIC")
	got := make(chan string, 1000)
	consumer, err := client.NewPushConsumer(config("go-push"), client.WithPushAwaitDuration(5*time.Second),
		client.WithPushSubscriptionExpressions(map[string]*client.FilterExpression{topic: client.SUB_ALL}),
		client.WithPushMessageListener(&client.FuncMessageListener{Consume: func(one *client.MessageView) client.ConsumerResult {
			got <- string(one.GetBody())
			return client.SUCCESS
		}}))
	must(t, err)
	must(t, consumer.Start())
	defer consumer.GracefulStop()
	sender := producer(t, topic)
	for number := 0; number < bodies; number++ {
		_, err := sender.Send(context.Background(), message(topic, "p"+string(rune('A'+number))))
		must(t, err)
	}
	seen := map[string]bool{}
	for len(seen) < bodies {
		select {
		case body := <-got:
			if body[0] == 'p' {
				seen[body] = true
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("pushed %d of %d", len(seen), bodies)
		}
	}
}

func TestOrderedAndTimedMessages(t *testing.T) {
	ordered, timed := os.Getenv("ROCKETMQ_ORDERED"), os.Getenv("ROCKETMQ_TOPIC")
	one := message(ordered, "ordered")
	one.SetMessageGroup("group")
	_, err := producer(t, ordered).Send(context.Background(), one)
	must(t, err)
	late := message(timed, "late")
	late.SetDelayTimestamp(time.Now().Add(time.Second))
	_, err = producer(t, timed).Send(context.Background(), late)
	must(t, err)
	consumer, err := client.NewSimpleConsumer(config("go-ordered"), client.WithSimpleAwaitDuration(3*time.Second),
		client.WithSimpleSubscriptionExpressions(map[string]*client.FilterExpression{ordered: client.SUB_ALL}))
	must(t, err)
	must(t, consumer.Start())
	defer consumer.GracefulStop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		got, err := consumer.Receive(context.Background(), 1, 20*time.Second)
		if err == nil && len(got) == 1 {
			if *got[0].GetMessageGroup() != "group" {
				t.Fatalf("not what was sent: %v", got[0])
			}
			must(t, consumer.Ack(context.Background(), got[0]))
			return
		}
	}
	t.Fatal("nothing was received")
}

// A topic of its own: a client that has stopped leaves its streams open, and may be asked.
func TestTransaction(t *testing.T) {
	topic := os.Getenv("ROCKETMQ_TRANSACTIONS")
	checked := make(chan string, 10)
	sender := producer(t, topic, client.WithTransactionChecker(&client.TransactionChecker{Check: func(one *client.MessageView) client.TransactionResolution {
		checked <- string(one.GetBody())
		return client.COMMIT
	}}))
	for _, body := range []string{"committed", "checked"} {
		transaction := sender.BeginTransaction()
		_, err := sender.SendWithTransaction(context.Background(), message(topic, body), transaction)
		must(t, err)
		if body == "committed" {
			must(t, transaction.Commit())
		}
	}
	select {
	case body := <-checked:
		if body != "checked" {
			t.Fatalf("asked about %s", body)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("nobody asked")
	}
}

func TestMain(m *testing.M) {
	client.EnableSsl = false
	os.Exit(m.Run())
}
