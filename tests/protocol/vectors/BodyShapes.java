// Prints every body class of the official programs as JSON: once empty, once with each field filled. See README.md.
import java.lang.reflect.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

public class BodyShapes {
  static Object sample(Type t, String name, int depth) throws Exception {
    if (depth > 12) return null;
    if (t instanceof ParameterizedType) {
      ParameterizedType p = (ParameterizedType) t;
      Class<?> raw = (Class<?>) p.getRawType();
      if (Map.class.isAssignableFrom(raw)) {
        Map m =
            raw == TreeMap.class
                ? new TreeMap()
                : ConcurrentMap.class.isAssignableFrom(raw)
                    ? new ConcurrentHashMap()
                    : new AnyMap();
        Object k = sample(p.getActualTypeArguments()[0], "key", depth + 1),
            v = sample(p.getActualTypeArguments()[1], "value", depth + 1);
        if (k != null && v != null) m.put(k, v);
        return m;
      }
      if (Collection.class.isAssignableFrom(raw)) {
        Collection c =
            raw == TreeSet.class
                ? new TreeSet()
                : Set.class.isAssignableFrom(raw) ? new HashSet() : new ArrayList();
        Object v = sample(p.getActualTypeArguments()[0], name, depth + 1);
        if (v != null) c.add(v);
        return c;
      }
      t = raw;
    }
    if (!(t instanceof Class)) return null;
    Class<?> c = (Class<?>) t;
    if (c == String.class) return name.equals("key") || name.equals("value") ? name : "x-" + name;
    if (c == int.class || c == Integer.class) return 7;
    if (c == long.class || c == Long.class) return 1700000000123L;
    if (c == boolean.class || c == Boolean.class) return true;
    if (c == double.class || c == Double.class) return 1.5;
    if (c == short.class || c == byte.class) return null;
    if (c == AtomicLong.class) return new AtomicLong(5);
    if (c == BitSet.class) {
      BitSet b = new BitSet();
      b.set(0);
      b.set(9);
      return b;
    }
    if (c == long[].class) return new long[] {1000L, 5000L};
    if (c.isEnum()) return c.getEnumConstants()[0];
    if (c.isArray() || c.isInterface()) return null;
    if (!c.getName().startsWith("org.apache.rocketmq")) return null;
    return fill(c, depth);
  }

  static class AnyMap extends HashMap {}

  static Object make(Class<?> c) throws Exception {
    try {
      Constructor<?> k = c.getDeclaredConstructor();
      k.setAccessible(true);
      return k.newInstance();
    } catch (NoSuchMethodException e) {
      Field u = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
      u.setAccessible(true);
      return ((sun.misc.Unsafe) u.get(null)).allocateInstance(c);
    }
  }

  static Object fill(Class<?> c, int depth) throws Exception {
    Object o = make(c);
    for (Class<?> s = c; s != Object.class; s = s.getSuperclass())
      for (Field f : s.getDeclaredFields()) {
        if (Modifier.isStatic(f.getModifiers()) || Modifier.isTransient(f.getModifiers())) continue;
        f.setAccessible(true);
        Object v = sample(f.getGenericType(), f.getName(), depth + 1);
        if (v == null) continue;
        if (Modifier.isFinal(f.getModifiers())) {
          Object cur = f.get(o);
          if (cur instanceof Map) ((Map) cur).putAll((Map) v);
          else if (cur instanceof Collection) ((Collection) cur).addAll((Collection) v);
          else f.set(o, v);
        } else f.set(o, v);
      }
    return o;
  }

  static String json(Object o, boolean pretty) throws Exception {
    Class<?> rs = Class.forName("org.apache.rocketmq.remoting.protocol.RemotingSerializable");
    return (String) rs.getMethod("toJson", Object.class, boolean.class).invoke(null, o, pretty);
  }

  public static void main(String[] a) throws Exception {
    Scanner in = new Scanner(System.in);
    while (in.hasNextLine()) {
      String cls = in.nextLine().trim();
      if (cls.isEmpty()) continue;
      try {
        Class<?> c = Class.forName(cls);
        if (c.isEnum() || c.isInterface()) continue;
        try {
          System.out.println(c.getSimpleName() + "\tempty\t" + json(make(c), false));
        } catch (Throwable e) {
        }
        System.out.println(c.getSimpleName() + "\tfull\t" + json(fill(c, 0), false));
      } catch (Throwable e) {
        System.err.println(cls + " " + e);
      }
    }
  }
}
