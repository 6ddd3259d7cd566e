import java.lang.reflect.Field;
import java.util.List;
import java.util.TreeSet;
import org.apache.commons.cli.Option;
import org.apache.commons.cli.OptionGroup;
import org.apache.commons.cli.Options;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/**
 * What each command of mqadmin takes, a line for the command and one for each option: "OPTION", command, short and long
 * name, "argument" or "flag", "required", "one of" the options that exclude each other, or nothing, description.
 */
public class AdminOptions {
    public static void main(String[] args) throws Exception {
        MQAdminStartup.initCommand();
        Field table = MQAdminStartup.class.getDeclaredField("SUB_COMMANDS");
        table.setAccessible(true);
        for (Object one : (List<?>) table.get(null)) {
            SubCommand command = (SubCommand) one;
            tell(command.commandName(), "", "", "", "", command.commandDesc());
            Options options = command.buildCommandlineOptions(new Options());
            for (Option option : options.getOptions()) {
                OptionGroup group = options.getOptionGroup(option);
                String need = option.isRequired() ? "required" : group != null && group.isRequired() ? oneOf(group) : "";
                tell(command.commandName(), option.getOpt() == null ? "" : option.getOpt(), option.getLongOpt(),
                    option.hasArg() ? "argument" : "flag", need, option.getDescription().replaceAll("\\s+", " "));
            }
        }
    }

    private static String oneOf(OptionGroup group) {
        StringBuilder names = new StringBuilder("one of");
        for (String name : new TreeSet<>(group.getNames())) {
            names.append(' ').append(name);
        }
        return names.toString();
    }

    private static void tell(String... cells) {
        System.out.println("OPTION\t" + String.join("\t", cells));
    }
}
