import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One message of each kind a producer of this version makes, to the topic given, and what the broker answered:
 * "SENT kind unique-id offset-id queue offset status". Ids and times differ from run to run, sizes do not.
 */
public class AdminTraffic {
    private static DefaultMQProducer producer;
    private static String topic;

    public static void main(String[] args) throws Exception {
        topic = args[0];
        producer = new DefaultMQProducer("admin_producer");
        producer.setSendMsgTimeout(20_000);
        producer.start();
        MessageQueue first = new MessageQueue(topic, "broker-a", 0);
        MessageQueue second = new MessageQueue(topic, "broker-a", 1);
        told("plain", producer.send(message("plain"), first));
        Message tagged = new Message(topic, "TagA", "keyA keyB", "tagged".getBytes(StandardCharsets.UTF_8));
        tagged.putUserProperty("colour", "blau \u00fc");
        told("tagged", producer.send(tagged, first));
        told("compressed", producer.send(new Message(topic, new byte[10_000]), second));
        List<Message> batch = new ArrayList<>(Arrays.asList(message("batch0"), message("batch1"), message("batch2")));
        told("batch", producer.send(batch, second));
        Message delayed = message("delayed");
        delayed.setDelayTimeLevel(1);
        told("delayed", producer.send(delayed, second));
        System.out.println("DONE");
        System.out.flush();
        producer.shutdown();
        System.exit(0);
    }

    private static Message message(String body) {
        return new Message(topic, null, "key-" + body.replace(' ', '-'), body.getBytes(StandardCharsets.UTF_8));
    }

    private static void told(String kind, SendResult result) {
        System.out.println("SENT " + kind + " " + result.getMsgId() + " " + result.getOffsetMsgId() + " "
            + result.getMessageQueue().getQueueId() + " " + result.getQueueOffset() + " " + result.getSendStatus());
        System.out.flush();
    }
}
