import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * mqadmin for many commands in one JVM: what differs from the real thing is only the start-up that is saved.
 * A line on stdin is the words of one command, each in Base64, separated by spaces; the end of its output is marked by a
 * line of its own that carries the mark given as the first argument.
 */
public class AdminShell {
    public static void main(String[] args) throws Exception {
        String mark = args[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        hurryShutdowns(Thread.currentThread());
        System.out.println(mark);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ")) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            forgetCommands();
            try {
                MQAdminStartup.main0(words.toArray(new String[0]), null);
            } catch (Throwable failure) {
                failure.printStackTrace(System.out);
            }
            System.out.println();
            System.out.println(mark);
            System.out.flush();
        }
        System.exit(0); // some commands leave threads behind
    }

    /** A 5.x client that ends waits up to 3 s for its event thread to look up from an empty queue; wake that thread instead. */
    private static void hurryShutdowns(Thread commands) {
        Thread hurrier = new Thread(() -> {
            while (true) {
                boolean isEnding = false;
                for (StackTraceElement frame : commands.getStackTrace()) {
                    isEnding |= frame.getMethodName().equals("shutdown") && frame.getClassName().endsWith("ServiceThread");
                }
                if (isEnding) {
                    for (Thread thread : Thread.getAllStackTraces().keySet()) {
                        if (thread.getName().contains("NettyEventExecutor")) {
                            thread.interrupt();
                        }
                    }
                }
                try {
                    Thread.sleep(20);
                } catch (InterruptedException end) {
                    return;
                }
            }
        });
        hurrier.setDaemon(true);
        hurrier.start();
    }

    /** main0 registers its commands anew each time; old instances, which may hold a closed client, must not be found first. */
    private static void forgetCommands() throws Exception {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
