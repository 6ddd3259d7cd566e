import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.util.BloomFilter;

/**
 * What the official filter module says about expressions. A line in: expression TAB properties (name=value joined by
 * blanks; \t, \n, \r, \f, \s for white space, \\ for a backslash). The line out is the same with one more cell:
 * T, F, N (unknown), E (the evaluation throws), X (the expression is refused). Texts given as arguments: their bits in
 * the bloom filter of default settings instead.
 */
public class FilterRows {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        if (args.length > 0) {
            for (String text : args) {
                out.println(text + "\t" + BloomFilter.createByFn(20, 32).generate(text));
            }
            return;
        }
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] cells = line.split("\t", -1);
            out.println(line + "\t" + judge(plain(cells[0]), properties(cells[1])));
        }
    }

    static String judge(String text, final Map<String, String> properties) {
        Expression expression;
        try {
            expression = FilterFactory.INSTANCE.get("SQL92").compile(text);
        } catch (Throwable refused) {
            return "X";
        }
        try {
            Object value = expression.evaluate(new EvaluationContext() {
                public Object get(String name) {
                    return properties.get(name);
                }

                public Map<String, Object> keyValues() {
                    return new HashMap<String, Object>(properties);
                }
            });
            return value == null ? "N" : !(value instanceof Boolean) ? "O" : (Boolean) value ? "T" : "F";
        } catch (Throwable failed) {
            return "E";
        }
    }

    static Map<String, String> properties(String cell) {
        Map<String, String> properties = new HashMap<String, String>();
        for (String pair : cell.split(" ")) {
            int middle = pair.indexOf('=');
            if (middle > 0) {
                properties.put(pair.substring(0, middle), plain(pair.substring(middle + 1)));
            }
        }
        return properties;
    }

    static String plain(String text) {
        StringBuilder plain = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '\\') {
                c = text.charAt(++i);
                c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 'f' ? '\f' : c == 's' ? ' ' : c;
            }
            plain.append(c);
        }
        return plain.toString();
    }
}
