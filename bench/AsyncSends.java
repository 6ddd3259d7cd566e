import java.nio.charset.StandardCharsets;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * The official client's asynchronous send with a limit of sends under way, as a program that wants its messages stored
 * would use it. Arguments: name server, topic, sends under way, body bytes. Each second it says how many were stored and
 * how many failed; it ends when it is killed.
 */
public class AsyncSends {
    public static void main(String[] args) throws Exception {
        Semaphore underWay = new Semaphore(Integer.parseInt(args[2]));
        byte[] body = "x".repeat(Integer.parseInt(args[3])).getBytes(StandardCharsets.US_ASCII);
        LongAdder stored = new LongAdder();
        LongAdder failed = new LongAdder();
        DefaultMQProducer producer = new DefaultMQProducer("benchmark_producer");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        tellEachSecond(stored, failed);
        while (true) {
            underWay.acquire();
            producer.send(new Message(args[1], body), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    stored.increment();
                    underWay.release();
                }

                @Override
                public void onException(Throwable failure) {
                    failed.increment();
                    underWay.release();
                }
            });
        }
    }

    private static void tellEachSecond(LongAdder stored, LongAdder failed) {
        Thread teller = new Thread(() -> {
            while (true) {
                long began = System.nanoTime();
                try {
                    Thread.sleep(1000);
                } catch (InterruptedException end) {
                    return;
                }
                double seconds = (System.nanoTime() - began) / 1e9;
                System.out.printf(
                    "Send TPS: %d Failed: %d%n", Math.round(stored.sumThenReset() / seconds), failed.sumThenReset());
            }
        });
        teller.setDaemon(true);
        teller.start();
    }
}
