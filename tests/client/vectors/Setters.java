import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Prints the public setters of the official clients, with the values their getters give at first. */
public class Setters {
    public static void main(String[] args) throws Exception {
        String version = args[0];
        String base = "org.apache.rocketmq.client.";
        for (String name : new String[] {
            "ClientConfig", "producer.DefaultMQProducer", "producer.TransactionMQProducer",
            "consumer.DefaultMQPushConsumer", "consumer.DefaultLitePullConsumer"}) {
            Class<?> kind = Class.forName(base + name);
            Object made = kind.getConstructor().newInstance();
            TreeSet<String> rows = new TreeSet<>();
            for (Method method : kind.getMethods()) {
                boolean sets = method.getName().startsWith("set") && method.getParameterCount() > 0;
                if (!sets || Modifier.isStatic(method.getModifiers()) || method.isBridge()) {
                    continue;
                }
                String takes = Arrays.stream(method.getParameterTypes())
                    .map(Class::getSimpleName).collect(Collectors.joining(","));
                rows.add(method.getName() + "\t" + takes + "\t" + first(kind, made, method));
            }
            for (String row : rows) {
                System.out.println(version + "\t" + kind.getSimpleName() + "\t" + row);
            }
        }
        System.exit(0);
    }

    /** `*` for what hangs on the machine or moment, `-` where there is no getter. */
    private static String first(Class<?> kind, Object made, Method setter) {
        String property = setter.getName().substring(3);
        if (isOfTheMoment(property)) {
            return "*";
        }
        for (String prefix : new String[] {"get", "is"}) {
            try {
                Object value = kind.getMethod(prefix + property).invoke(made);
                if (value == null || value instanceof Number || value instanceof Boolean || value instanceof Enum) {
                    return String.valueOf(value);
                }
                if (value instanceof long[]) {
                    return Arrays.toString((long[]) value);
                }
                return value instanceof String ? value.toString() : "*";
            } catch (ReflectiveOperationException error) {
                continue;
            }
        }
        return "-";
    }

    private static boolean isOfTheMoment(String property) {
        return Arrays.asList("ClientIP", "ConsumeTimestamp", "ClientCallbackExecutorThreads",
            "ConcurrentHeartbeatThreadPoolSize").contains(property);
    }
}
