import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.ChangeMessageVisibilityBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;

/** What the Java SDK sends for each verb of messages: Rounds ENDPOINT QUEUE_URL ROUNDS. */
public class Rounds {
    private static final Map<String, MessageAttributeValue> ATTRIBUTES = Map.of(
            "kind", MessageAttributeValue.builder().dataType("String").stringValue("grün").build(),
            "bytes", MessageAttributeValue.builder().dataType("Binary").binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1})).build());

    private static List<Message> take(SqsClient sqs, String url, int least) {
        List<Message> found = new ArrayList<>();
        while (found.size() < least) {
            found.addAll(sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10).waitTimeSeconds(5)
                    .messageSystemAttributeNames(MessageSystemAttributeName.ALL).messageAttributeNames("All")).messages());
        }
        return found;
    }

    private static void round(SqsClient sqs, String url) {
        sqs.sendMessage(r -> r.queueUrl(url).messageBody("a").messageAttributes(ATTRIBUTES));
        for (Message one : take(sqs, url, 1)) {
            sqs.changeMessageVisibility(r -> r.queueUrl(url).receiptHandle(one.receiptHandle()).visibilityTimeout(30));
            sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(one.receiptHandle()));
        }
        sqs.sendMessageBatch(r -> r.queueUrl(url).entries(
                SendMessageBatchRequestEntry.builder().id("a").messageBody("a").build(),
                SendMessageBatchRequestEntry.builder().id("b").messageBody("b").messageAttributes(ATTRIBUTES).build()));
        List<ChangeMessageVisibilityBatchRequestEntry> longer = new ArrayList<>();
        List<DeleteMessageBatchRequestEntry> done = new ArrayList<>();
        for (Message one : take(sqs, url, 2)) {
            String id = "e" + done.size();
            longer.add(ChangeMessageVisibilityBatchRequestEntry.builder().id(id).receiptHandle(one.receiptHandle()).visibilityTimeout(30).build());
            done.add(DeleteMessageBatchRequestEntry.builder().id(id).receiptHandle(one.receiptHandle()).build());
        }
        int failed = sqs.changeMessageVisibilityBatch(r -> r.queueUrl(url).entries(longer)).failed().size()
                + sqs.deleteMessageBatch(r -> r.queueUrl(url).entries(done)).failed().size();
        if (failed > 0) {
            throw new IllegalStateException(failed + " entries failed");
        }
    }

    public static void main(String[] words) {
        try (SqsClient sqs = SqsClient.builder().endpointOverride(URI.create(words[0])).region(Region.EU_CENTRAL_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("shop", "x")))
                .httpClient(UrlConnectionHttpClient.create()).build()) {
            for (int done = 0; done < Integer.parseInt(words[2]); done++) {
                round(sqs, words[1]);
            }
        }
        System.out.println("rounds " + words[2]);
    }
}
