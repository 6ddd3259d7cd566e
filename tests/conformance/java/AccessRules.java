import java.io.File;
import java.lang.reflect.Field;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.rocketmq.common.action.Action;
import org.apache.rocketmq.common.action.RocketMQAction;
import org.apache.rocketmq.common.resource.RocketMQResource;

/** The rules of 5.x authorization as its request headers declare them: code, cluster or not, actions, fields that name topics and groups. */
public class AccessRules {
    public static void main(String[] args) throws Exception {
        TreeMap<Integer, String> rules = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.contains("rocketmq-remoting") && !path.contains("rocketmq-common")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                for (String name : (Iterable<String>) jar.stream().map(e -> e.getName())::iterator) {
                    if (name.endsWith(".class") && name.contains("/header/")) {
                        add(rules, name.substring(0, name.length() - 6).replace('/', '.'));
                    }
                }
            }
        }
        rules.forEach((code, rule) -> System.out.println(code + "\t" + rule));
    }

    private static String actions(RocketMQAction action) {
        StringBuilder names = new StringBuilder();
        for (Action one : action.action()) {
            names.append(names.length() == 0 ? "" : " ").append(one.getName());
        }
        return names.toString();
    }

    private static void add(TreeMap<Integer, String> rules, String name) throws Exception {
        Class<?> type = Class.forName(name, false, AccessRules.class.getClassLoader());
        RocketMQAction action = type.getAnnotation(RocketMQAction.class);
        if (action == null) {
            return;
        }
        StringBuilder fields = new StringBuilder();
        for (Field field : type.getDeclaredFields()) {
            RocketMQResource resource = field.getAnnotation(RocketMQResource.class);
            if (resource != null) {
                fields.append(fields.length() == 0 ? "" : " ").append(resource.value().getName()).append(":")
                    .append(field.getName()).append(resource.splitter());
            }
        }
        rules.put(action.value(), action.resource().getName() + "\t" + actions(action) + "\t" + fields);
    }
}
