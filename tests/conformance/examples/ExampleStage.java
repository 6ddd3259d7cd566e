import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.impl.MQClientManager;

/**
 * Many example programs in one JVM, side by side, each with an output file of its own: what differs from running them
 * one by one is only the start-up that is saved. Arguments: the folder of the output files.
 *
 * A line on stdin is one command, its words in Base64 and separated by spaces; its end is told on stdout:
 *
 *   play LABEL [-Dname=value] CLASS [ARGUMENT...]   "playing LABEL" at once, "ended LABEL" when main returns
 *   stop LABEL CLASS GROUP [INSTANCE]               "stopped LABEL": its consumer said good-bye to the broker
 *
 * A main's output is told apart by its thread group, which all threads that a client starts inherit. With a -D
 * property, "playing" is said only when main has returned: properties are global, and the next main must not see it.
 */
public class ExampleStage {
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    private static final Map<ThreadGroup, OutputStream> FILES = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        PrintStream routed = new PrintStream(new ByThreadGroup(), true, "UTF-8");
        System.setOut(routed);
        System.setErr(routed);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OUT.println("stage ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ")) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            if (words.get(0).equals("play")) {
                play(args[0], words.get(1), words.subList(2, words.size()));
            } else {
                stop(words.get(2), words.get(3), words.size() > 4 ? words.get(4) : "");
                OUT.println("stopped " + words.get(1));
            }
        }
        System.exit(0);
    }

    private static void play(String folder, String label, List<String> words) throws Exception {
        boolean named = words.get(0).startsWith("-D");
        String[] property = named ? words.get(0).substring(2).split("=", 2) : null;
        List<String> rest = words.subList(named ? 1 : 0, words.size());
        Class<?> program = Class.forName(rest.get(0));
        String[] arguments = rest.subList(1, rest.size()).toArray(new String[0]);
        ThreadGroup group = new ThreadGroup(label);
        FILES.put(group, new FileOutputStream(folder + "/" + label + ".out"));
        setRunning(program, true);
        if (named) {
            System.setProperty(property[0], property[1]);
        }
        Thread thread = new Thread(group, () -> {
            try {
                program.getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException failure) {
                failure.getCause().printStackTrace();
            } catch (Throwable failure) {
                failure.printStackTrace();
            }
            OUT.println("ended " + label);
        }, label);
        thread.start();
        if (named) {
            thread.join();
            System.clearProperty(property[0]);
        }
        OUT.println("playing " + label);
    }

    /** Mains never end their consumers, or (those with a flag `running`) seconds later: here the client's tables give them. */
    private static void stop(String program, String group, String instance) throws Exception {
        setRunning(Class.forName(program), false);
        for (Map.Entry<?, ?> client : table(MQClientManager.getInstance(), "factoryTable").entrySet()) {
            Object consumer = table(client.getValue(), "consumerTable").get(group);
            if (consumer != null && client.getKey().toString().contains("@" + instance)) {
                Method shutdown = consumer.getClass().getMethod("shutdown");
                shutdown.setAccessible(true);
                shutdown.invoke(consumer);
            }
        }
    }

    private static void setRunning(Class<?> program, boolean value) throws IllegalAccessException {
        for (Field field : program.getFields()) {
            if (field.getName().equals("running")) {
                field.setBoolean(null, value);
            }
        }
    }

    private static Map<?, ?> table(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return (Map<?, ?>) field.get(owner);
    }

    /** Bytes go to the file of the nearest thread group that has one. */
    private static final class ByThreadGroup extends OutputStream {
        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int size) throws IOException {
            OutputStream file = null;
            for (ThreadGroup group = Thread.currentThread().getThreadGroup(); group != null && file == null;
                group = group.getParent()) {
                file = FILES.get(group);
            }
            (file == null ? OUT : file).write(bytes, offset, size);
        }
    }
}
