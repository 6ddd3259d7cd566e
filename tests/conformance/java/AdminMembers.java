import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A producer and a consumer with fixed instance names, online until told to leave: what mqadmin shows of clients.
 * Arguments: topic, consumer group, producer group, messages to send to each of two queues.
 */
public class AdminMembers {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(args[2]);
        producer.setInstanceName("producing");
        producer.start();
        int count = Integer.parseInt(args[3]);
        for (int queueId = 0; queueId < 2; queueId++) {
            for (int at = 0; at < count; at++) {
                Message message = new Message(args[0], at % 2 == 0 ? "even" : "odd", ("body " + at).getBytes(StandardCharsets.UTF_8));
                producer.send(message, new MessageQueue(args[0], "broker-a", queueId));
            }
        }
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setInstanceName("consuming");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[0], "even || odd");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                System.out.println("SEEN " + message.getQueueId() + " " + message.getQueueOffset());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("JOINED");
        System.in.read();
        consumer.shutdown();
        producer.shutdown();
        System.out.println("LEFT");
        System.exit(0);
    }
}
