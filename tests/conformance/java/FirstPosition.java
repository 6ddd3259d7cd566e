import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Push consumers that tell the first offset they consume of each queue. A line on stdin starts one:
 *
 *   GROUP CONSUME_FROM_... TIMESTAMP topic:queues topic:queues ...
 *
 * "READY GROUP" when all these queues are being pulled, that is when every first position is decided; then, for each
 * queue once, "FIRST GROUP topic queueId offset". One thread consumes, so that the first message told is the first one.
 */
public class FirstPosition {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            Thread thread = new Thread(() -> {
                try {
                    consume(words);
                } catch (Throwable failure) {
                    failure.printStackTrace(System.out);
                }
            });
            thread.start();
        }
        System.exit(0);
    }

    private static void consume(String[] words) throws Exception {
        String group = words[0];
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setInstanceName("first-position-" + ProcessHandle.current().pid()); // one client for all consumers
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(words[1]));
        consumer.setConsumeTimestamp(words[2]);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        int expected = 1; // the retry topic of the group
        for (int i = 3; i < words.length; i++) {
            String[] topic = words[i].split(":");
            consumer.subscribe(topic[0], "*");
            expected += Integer.parseInt(topic[1]);
        }
        Set<MessageQueue> seen = ConcurrentHashMap.newKeySet();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageQueue queue = context.getMessageQueue();
            if (seen.add(queue)) {
                say("FIRST " + group + " " + queue.getTopic() + " " + queue.getQueueId() + " " + messages.get(0).getQueueOffset());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        ConcurrentMap<MessageQueue, ?> pulled = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable();
        while (pulled.size() < expected) {
            Thread.sleep(20);
        }
        say("READY " + group);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
