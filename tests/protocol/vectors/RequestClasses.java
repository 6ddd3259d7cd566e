// Prints the codes and the header classes of the official programs. See README.md.
import java.io.*;
import java.lang.reflect.*;
import java.util.*;
import java.util.jar.*;

public class RequestClasses {
  static final List<String> COMMON = List.of("RpcRequestHeader", "TopicRequestHeader");

  static void codes(String name) throws Exception {
    for (String at : List.of("org.apache.rocketmq.common.protocol.", "org.apache.rocketmq.remoting.protocol.")) {
      try {
        for (Field f : Class.forName(at + name).getDeclaredFields())
          if (Modifier.isStatic(f.getModifiers()))
            System.out.println(name + "\t" + ((Number) f.get(null)).intValue() + "\t" + f.getName());
      } catch (ClassNotFoundException e) {
        // the other generation's package
      }
    }
  }

  static void header(Class<?> c) throws Exception {
    Object empty = null;
    try {
      Constructor<?> k = c.getDeclaredConstructor();
      k.setAccessible(true);
      empty = k.newInstance();
    } catch (NoSuchMethodException | InstantiationException e) {
      // no defaults to show
    }
    List<String> mandatory = new ArrayList<>(), standing = new ArrayList<>(), optional = new ArrayList<>(), common = new ArrayList<>();
    for (Class<?> k = c; k != null; k = k.getSuperclass())
      for (Field f : k.getDeclaredFields()) {
        if (Modifier.isStatic(f.getModifiers()) || f.getName().startsWith("this")) continue;
        f.setAccessible(true);
        String shown = f.getName() + ":" + f.getType().getSimpleName();
        boolean marked = false;
        for (var x : f.getAnnotations()) marked |= x.annotationType().getSimpleName().equals("CFNotNull");
        Object value = empty == null ? null : f.get(empty);
        if (value instanceof Long && (Long) value > 1) value = "now";
        if (COMMON.contains(k.getSimpleName()) && k != c) common.add(shown);
        else if (!marked) optional.add(value == null ? shown : shown + "=" + value);
        else if (value == null) mandatory.add(shown);
        else standing.add(shown + "=" + value);
      }
    System.out.println(
        "header\t" + c.getSimpleName() + "\t" + String.join(" ", mandatory) + "\t" + String.join(" ", standing)
            + "\t" + String.join(" ", optional) + "\t" + String.join(" ", common));
  }

  public static void main(String[] a) throws Exception {
    for (String name : List.of("RequestCode", "RemotingSysResponseCode", "ResponseCode")) codes(name);
    Class<?> root = Class.forName("org.apache.rocketmq.remoting.CommandCustomHeader");
    TreeMap<String, Class<?>> found = new TreeMap<>();
    for (File f : new File(a[0]).listFiles((d, n) -> n.matches("rocketmq-.*\\.jar")))
      try (JarFile jar = new JarFile(f)) {
        for (JarEntry e : Collections.list(jar.entries())) {
          if (!e.getName().matches("org/apache/rocketmq/.*\\.class")) continue;
          String name = e.getName().replace('/', '.').replaceAll("\\.class$", "");
          try {
            Class<?> c = Class.forName(name, false, root.getClassLoader());
            if (root.isAssignableFrom(c) && !Modifier.isAbstract(c.getModifiers())) found.put(c.getSimpleName(), c);
          } catch (NoClassDefFoundError x) {
            // of a library that is not there
          }
        }
      }
    for (Class<?> c : found.values()) header(c);
  }
}
