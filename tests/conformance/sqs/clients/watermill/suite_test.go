// watermill's own suite for a Pub/Sub, over its SQS client, against the service at SQS_ENDPOINT.
//
// The features are those that watermill declares when it runs the suite itself, but for the readers in the test of order.
package watermill

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"
)

// One reader in the test of order. With ten, a reader that a busy machine stops between its receive and its delivery looks
// like a queue out of order: over a queue of one partition, 7 of 10 runs failed so at load 23 on two cores.
var features = tests.Features{
	GuaranteedOrder: true, GuaranteedOrderWithSingleSubscriber: true, Persistent: true, ForceShort: true,
}

// One message a receive, as the client does by default.
func TestSingly(t *testing.T) {
	t.Parallel()
	suite(t, 1, features)
}

func TestInTens(t *testing.T) {
	t.Parallel()
	suite(t, 10, features)
}

// The suite compares the order of messages of one kind, and there are 16 kinds. Here all are compared.
func TestOrderOfSending(t *testing.T) {
	t.Parallel()
	settings := sqs.QueueConfigAttributes{VisibilityTimeout: "30"}
	pub, sub := publisher(t, settings, nil), subscriber(t, settings, 1)
	topic := watermill.NewUUID()
	require.NoError(t, sub.SubscribeInitialize(topic))
	var sent, received []string
	for number := range 100 {
		sent = append(sent, strconv.Itoa(number))
		require.NoError(t, pub.Publish(topic, message.NewMessage(watermill.NewUUID(), []byte(sent[number]))))
	}
	messages, err := sub.Subscribe(context.Background(), topic)
	require.NoError(t, err)
	for len(received) < len(sent) {
		select {
		case one := <-messages:
			received = append(received, string(one.Payload))
			one.Ack()
		case <-time.After(15 * time.Second):
			t.Fatalf("%d of %d received", len(received), len(sent))
		}
	}
	require.NoError(t, sub.Close())
	require.Equal(t, sent, received)
}

// Ten readers that receive ten messages each: only a FIFO queue keeps the order of each kind then.
func TestOrderOfAFifoQueue(t *testing.T) {
	t.Parallel()
	fifo := features
	fifo.GuaranteedOrderWithSingleSubscriber = false
	fifo.GenerateTopicFunc = func(test tests.TestContext) string { return "topic-" + test.TestID.String() + ".fifo" }
	create := func(t *testing.T) (message.Publisher, message.Subscriber) {
		settings := sqs.QueueConfigAttributes{VisibilityTimeout: "1", FifoQueue: true}
		return publisher(t, settings, sendInGroups), subscriber(t, settings, 10)
	}
	tests.TestPublishSubscribeInOrder(t, tests.TestContext{TestID: tests.NewTestID(), Features: fifo}, create)
}

func TestAQueueWithOtherSettingsIsTaken(t *testing.T) {
	t.Parallel()
	topic := watermill.NewUUID()
	for _, visibility := range []string{"1", "20"} {
		settings := sqs.QueueConfigAttributes{VisibilityTimeout: visibility}
		require.NoError(t, subscriber(t, settings, 1).SubscribeInitialize(topic))
	}
}

func TestAQueueThatIsMissing(t *testing.T) {
	t.Parallel()
	options := []func(*awssqs.Options){endpoint}
	pub, err := sqs.NewPublisher(
		sqs.PublisherConfig{AWSConfig: config(), OptFns: options, DoNotCreateQueueIfNotExists: true}, watermill.NopLogger{})
	require.NoError(t, err)
	sub, err := sqs.NewSubscriber(
		sqs.SubscriberConfig{AWSConfig: config(), OptFns: options, DoNotCreateQueueIfNotExists: true}, watermill.NopLogger{})
	require.NoError(t, err)

	require.ErrorContains(t, pub.Publish("nowhere", message.NewMessage("1", []byte("x"))), "queue for topic nowhere doesn't exist")
	_, err = sub.Subscribe(context.Background(), "nowhere")
	require.ErrorContains(t, err, "queue for topic 'nowhere' doesn't exists")
}

// What a busy machine does to the suite now and then: it closes a reader whose last delete is done already.
func TestAReaderThatHoldsAMessageIsClosed(t *testing.T) {
	t.Parallel()
	settings := sqs.QueueConfigAttributes{VisibilityTimeout: "1"}
	pub, sub := publisher(t, settings, nil), subscriber(t, settings, 10)
	topic := watermill.NewUUID()
	require.NoError(t, sub.SubscribeInitialize(topic))
	for _, body := range []string{"1", "2"} {
		require.NoError(t, pub.Publish(topic, message.NewMessage(watermill.NewUUID(), []byte(body))))
	}
	messages, err := sub.Subscribe(context.Background(), topic)
	require.NoError(t, err)
	(<-messages).Ack()
	time.Sleep(time.Second)
	closed := make(chan error)
	go func() { closed <- sub.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(15 * time.Second):
		t.Fatal("the reader is not closed")
	}
}

// A reader that is closed while it hands out a message waits for somebody to take it, for ever: so somebody does. It is
// not acknowledged, so it comes again.
type reader struct {
	*sqs.Subscriber
	lock  sync.Mutex
	given []<-chan *message.Message
}

func (r *reader) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	messages, err := r.Subscriber.Subscribe(ctx, topic)
	if err == nil {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.given = append(r.given, messages)
	}
	return messages, err
}

func (r *reader) Close() error {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, messages := range r.given {
		go func() {
			for range messages {
			}
		}()
	}
	return r.Subscriber.Close()
}

func suite(t *testing.T, most int32, features tests.Features) {
	// What watermill's own run uses: a message that was not acknowledged comes again after a second.
	settings := sqs.QueueConfigAttributes{VisibilityTimeout: "1"}
	create := func(t *testing.T) (message.Publisher, message.Subscriber) {
		return publisher(t, settings, nil), subscriber(t, settings, most)
	}
	tests.TestPubSub(t, features, create, func(t *testing.T, _ string) (message.Publisher, message.Subscriber) { return create(t) })
}

func publisher(t *testing.T, settings sqs.QueueConfigAttributes, input sqs.GenerateSendMessageInputFunc) *sqs.Publisher {
	pub, err := sqs.NewPublisher(sqs.PublisherConfig{
		AWSConfig:                config(),
		OptFns:                   []func(*awssqs.Options){endpoint},
		CreateQueueConfig:        settings,
		GenerateSendMessageInput: input,
	}, watermill.NopLogger{})
	require.NoError(t, err)
	return pub
}

func subscriber(t *testing.T, settings sqs.QueueConfigAttributes, most int32) *reader {
	sub, err := sqs.NewSubscriber(sqs.SubscriberConfig{
		AWSConfig:             config(),
		OptFns:                []func(*awssqs.Options){endpoint},
		QueueConfigAttributes: settings,
		GenerateReceiveMessageInput: func(ctx context.Context, queue sqs.QueueURL) (*awssqs.ReceiveMessageInput, error) {
			input, err := sqs.GenerateReceiveMessageInputDefault(ctx, queue)
			input.MaxNumberOfMessages = most
			return input, err
		},
	}, watermill.NopLogger{})
	require.NoError(t, err)
	return &reader{Subscriber: sub}
}

// The suite asks for the order of messages of one kind, and the kind is the body.
func sendInGroups(ctx context.Context, queue sqs.QueueURL, made *types.Message) (*awssqs.SendMessageInput, error) {
	input, err := sqs.GenerateSendMessageInputDefault(ctx, queue, made)
	input.MessageGroupId = made.Body
	input.MessageDeduplicationId = aws.String(watermill.NewUUID())
	return input, err
}

func config() aws.Config {
	return aws.Config{Region: "us-west-2", Credentials: credentials.NewStaticCredentialsProvider("shop", "not-looked-at", "")}
}

func endpoint(options *awssqs.Options) {
	options.BaseEndpoint = aws.String(os.Getenv("SQS_ENDPOINT"))
}
