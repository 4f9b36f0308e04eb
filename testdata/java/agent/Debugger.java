import com.sun.jdi.Bootstrap;
import com.sun.jdi.Location;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.StepEvent;
import com.sun.jdi.event.VMDisconnectEvent;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.StepRequest;
import java.util.ArrayList;
import java.util.List;

/**
 * Debugger PORT CLASS LINE: a debugger of the JVM that listens at the port. For each line of input it prints {@code READY hits lines}: how
 * often the breakpoint was hit since the last line of input, and the distinct lines to which a step to the next line led. Ends with its input.
 */
public class Debugger {
    static final List<Integer> steps = new ArrayList<>();
    static int hits;

    static void set(VirtualMachine vm, String name, int line) throws Exception {
        for (ReferenceType type : vm.classesByName(name)) {
            Location location = type.locationsOfLine(line).get(0);
            BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(location);
            request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
            request.enable();
        }
    }

    static void events(VirtualMachine vm) throws Exception {
        while (true) {
            EventSet events = vm.eventQueue().remove();
            for (Event event : events) {
                if (event instanceof VMDisconnectEvent) return;
                synchronized (steps) {
                    if (event instanceof BreakpointEvent) {
                        hits++;
                        StepRequest step = vm.eventRequestManager().createStepRequest(
                            ((BreakpointEvent) event).thread(), StepRequest.STEP_LINE, StepRequest.STEP_OVER);
                        step.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                        step.addCountFilter(1);
                        step.enable();
                    } else if (event instanceof StepEvent) {
                        int line = ((StepEvent) event).location().lineNumber();
                        if (!steps.contains(line)) steps.add(line);
                        vm.eventRequestManager().deleteEventRequest(event.request());
                    }
                }
            }
            events.resume();
        }
    }

    public static void main(String[] args) throws Exception {
        AttachingConnector connector = Bootstrap.virtualMachineManager().attachingConnectors().stream()
            .filter(c -> c.transport().name().equals("dt_socket")).findFirst().get();
        var arguments = connector.defaultArguments();
        arguments.get("hostname").setValue("127.0.0.1");
        arguments.get("port").setValue(args[0]);
        VirtualMachine vm = connector.attach(arguments);
        int line = Integer.parseInt(args[2]);
        set(vm, args[1], line);
        Thread thread = new Thread(() -> {
            try {
                events(vm);
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        thread.setDaemon(true);
        thread.start();
        System.out.println("READY");
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String asked = in.readLine(); asked != null; asked = in.readLine()) {
            synchronized (steps) {
                System.out.println("READY " + hits + " " + steps);
                hits = 0;
                steps.clear();
            }
        }
        vm.dispose();
    }
}
