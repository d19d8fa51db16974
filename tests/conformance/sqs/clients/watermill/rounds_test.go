package watermill

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"
)

// What the Go SDK sends for each verb of messages, ROUNDS times, on the queue at QUEUE_URL; without one nothing.
func TestRounds(t *testing.T) {
	url, many := os.Getenv("QUEUE_URL"), os.Getenv("ROUNDS")
	if url == "" {
		t.Skip("no QUEUE_URL")
	}
	rounds, err := strconv.Atoi(many)
	require.NoError(t, err)
	client, ctx := awssqs.NewFromConfig(config(), endpoint), context.Background()
	attributes := map[string]types.MessageAttributeValue{"kind": {DataType: aws.String("String"), StringValue: aws.String("grün")}}
	take := func(least int) (found []types.Message) {
		for len(found) < least {
			more, err := client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
				QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
			})
			require.NoError(t, err)
			found = append(found, more.Messages...)
		}
		return found
	}
	for range rounds {
		_, err := client.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a"), MessageAttributes: attributes})
		require.NoError(t, err)
		for _, one := range take(1) {
			_, err = client.ChangeMessageVisibility(ctx, &awssqs.ChangeMessageVisibilityInput{
				QueueUrl: &url, ReceiptHandle: one.ReceiptHandle, VisibilityTimeout: 30,
			})
			require.NoError(t, err)
			_, err = client.DeleteMessage(ctx, &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: one.ReceiptHandle})
			require.NoError(t, err)
		}
		_, err = client.SendMessageBatch(ctx, &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("a"), MessageBody: aws.String("a")}, {Id: aws.String("b"), MessageBody: aws.String("b"), MessageAttributes: attributes},
		}})
		require.NoError(t, err)
		var longer []types.ChangeMessageVisibilityBatchRequestEntry
		var done []types.DeleteMessageBatchRequestEntry
		for at, one := range take(2) {
			id := aws.String(strconv.Itoa(at))
			longer = append(longer, types.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: one.ReceiptHandle, VisibilityTimeout: 30})
			done = append(done, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: one.ReceiptHandle})
		}
		changed, err := client.ChangeMessageVisibilityBatch(ctx, &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: longer})
		require.NoError(t, err)
		require.Empty(t, changed.Failed)
		deleted, err := client.DeleteMessageBatch(ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: done})
		require.NoError(t, err)
		require.Empty(t, deleted.Failed)
	}
}
