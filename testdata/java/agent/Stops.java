import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.ArrayReference;
import com.sun.jdi.Bootstrap;
import com.sun.jdi.LocalVariable;
import com.sun.jdi.Location;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StackFrame;
import com.sun.jdi.StringReference;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * {@code PORT CLASS METHOD}: a debugger of the JVM that listens at the port. {@code set} sets a breakpoint at each line of the method.
 * {@code tell} prints where the program has stopped since then, with the names and values of the visible variables.
 */
public class Stops {
    static final List<String> stops = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] args) throws Exception {
        VirtualMachine vm = attached(args[0]);
        Thread listener = new Thread(() -> listen(vm));
        listener.setDaemon(true);
        listener.start();
        System.out.println("READY 1");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int phase = 1;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("set")) {
                set(vm, args[1], args[2]);
            } else {
                synchronized (stops) {
                    stops.forEach(System.out::println);
                    stops.clear();
                }
            }
            System.out.println("READY " + ++phase);
        }
        vm.dispose();
    }

    static VirtualMachine attached(String port) throws Exception {
        for (AttachingConnector connector : Bootstrap.virtualMachineManager().attachingConnectors()) {
            if (connector.name().equals("com.sun.jdi.SocketAttach")) {
                Map<String, Connector.Argument> arguments = connector.defaultArguments();
                arguments.get("hostname").setValue("127.0.0.1");
                arguments.get("port").setValue(port);
                return connector.attach(arguments);
            }
        }
        throw new IllegalStateException("no connector");
    }

    static void set(VirtualMachine vm, String type, String method) throws AbsentInformationException {
        int set = 0;
        for (ReferenceType found : vm.classesByName(type)) {
            for (Method of : found.methodsByName(method)) {
                for (Location location : of.allLineLocations()) {
                    BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(location);
                    request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                    request.enable();
                    set++;
                }
            }
        }
        System.out.println("SET " + set);
    }

    static void listen(VirtualMachine vm) {
        try {
            while (true) {
                EventSet events = vm.eventQueue().remove();
                for (Event event : events) {
                    if (event instanceof BreakpointEvent) {
                        StackFrame frame = ((BreakpointEvent) event).thread().frame(0);
                        StringBuilder told = new StringBuilder("STOP " + frame.location().lineNumber());
                        List<LocalVariable> variables = frame.visibleVariables();
                        for (LocalVariable variable : variables) {
                            told.append(' ').append(variable.name()).append('=').append(told(frame.getValue(variable)));
                        }
                        stops.add(told.toString());
                    }
                }
                events.resume();
            }
        } catch (com.sun.jdi.VMDisconnectedException e) {
            // The program has ended.
        } catch (Exception e) {
            stops.add("WRONG " + e);
            throw new IllegalStateException(e);
        }
    }

    static String told(Value value) {
        if (value instanceof StringReference) {
            return ((StringReference) value).value();
        }
        if (value instanceof ArrayReference) {
            return value.type().name() + ((ArrayReference) value).getValues();
        }
        return value instanceof ObjectReference ? value.type().name() : String.valueOf(value);
    }
}
