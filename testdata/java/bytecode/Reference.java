import static org.objectweb.asm.Opcodes.*;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodTooLargeException;
import org.objectweb.asm.tree.*;

/**
 * {@code FILE OUT OWNER}: reads original and rewritten classes, with the number of each allocation site. Inserts the same calls into the
 * originals with ASM as a reference. Prints the first difference in each method: instructions, jump targets, handlers, frames, lines,
 * variables, annotations. Writes the original, the rewritten class and the reference of each class to OUT.
 */
public class Reference {
    static String owner;
    static int compared;
    static int wrong;
    static final int[] left = new int[3];

    public static void main(String[] args) throws Exception {
        owner = args[2];
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Paths.get(args[0]))));
                DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Paths.get(args[1]))))) {
            while (true) {
                String name;
                try {
                    name = in.readUTF();
                } catch (EOFException e) {
                    break;
                }
                byte[] before = in.readNBytes(in.readInt());
                byte[] after = in.readNBytes(in.readInt());
                Map<String, Map<Integer, Integer>> sites = new HashMap<>();
                for (int left = in.readInt(); left > 0; left--) {
                    Map<Integer, Integer> of = sites.computeIfAbsent(in.readUTF(), m -> new HashMap<>());
                    of.put(in.readInt(), in.readInt());
                }
                Map<String, String> leftAlone = new HashMap<>();
                for (int left = in.readInt(); left > 0; left--) {
                    leftAlone.put(in.readUTF(), in.readUTF());
                }
                ClassNode node = read(before);
                Map<String, Integer> stacks = new HashMap<>();
                node.methods.forEach(method -> stacks.put(method.name + method.desc, method.maxStack));
                insert(node, sites);
                compare(name, written(node, ClassWriter.COMPUTE_MAXS), after, stacks);
                // Raise the maximum stack, because ASM ignores unreachable code when it computes this value, but the verifier does not.
                node.methods.forEach(method -> method.maxStack = Math.min(65_535, method.maxStack + 2));
                byte[] reference = written(node, 0);
                leftAlone.forEach((method, reason) -> justify(name, before, method, reason));
                out.writeUTF(name);
                for (byte[] bytes : new byte[][] {before, after, reference}) {
                    out.writeInt(bytes.length);
                    out.write(bytes);
                }
            }
        }
        System.out.println("COMPARED " + compared + " " + left[0] + " " + left[1] + " " + left[2] + " " + wrong);
        System.out.println("READY 1");
    }

    static void wrong(String what) {
        wrong++;
        if (wrong <= 20) {
            System.out.println("WRONG " + what);
        }
    }

    static ClassNode read(byte[] bytes) {
        ClassNode node = new ClassNode();
        new ClassReader(bytes).accept(node, ClassReader.EXPAND_FRAMES);
        return node;
    }

    // Inserts the same calls as the agent.

    static void insert(ClassNode node, Map<String, Map<Integer, Integer>> sites) {
        for (MethodNode method : node.methods) {
            Map<Integer, Integer> numbers = sites.get(method.name + method.desc);
            if (numbers != null) {
                insert(method, numbers);
                // The inserted code stores the sizes of multi-dimensional arrays in new local variables. Count these variables.
                for (AbstractInsnNode at : method.instructions) {
                    if (at instanceof VarInsnNode && at.getOpcode() == ISTORE) {
                        method.maxLocals = Math.max(method.maxLocals, ((VarInsnNode) at).var + 1);
                    }
                }
            }
        }
    }

    static byte[] written(ClassNode node, int flags) {
        ClassWriter writer = new ClassWriter(flags);
        node.accept(writer);
        return writer.toByteArray();
    }

    /** Keys of {@code numbers} are 256 * index of the allocation in the method + index of the array dimension. Values are site numbers. */
    static void insert(MethodNode method, Map<Integer, Integer> numbers) {
        int allocation = 0;
        Map<LabelNode, LabelNode> behind = new IdentityHashMap<>();
        for (AbstractInsnNode at : method.instructions.toArray()) {
            int opcode = at.getOpcode();
            if (opcode != NEW && opcode != NEWARRAY && opcode != ANEWARRAY && opcode != MULTIANEWARRAY) {
                continue;
            }
            int key = allocation++ << 8;
            InsnList calls = new InsnList();
            if (opcode == MULTIANEWARRAY && ((MultiANewArrayInsnNode) at).dims > 1) {
                levels(calls, key, ((MultiANewArrayInsnNode) at).dims, method.maxLocals, numbers);
            } else if (numbers.containsKey(key)) {
                if (opcode != NEW) {
                    calls.add(new InsnNode(DUP));
                }
                calls.add(number(numbers.get(key)));
                calls.add(opcode == NEW ? call("object", "(I)V") : call("array", "(II)V"));
            }
            if (opcode == NEW) {
                // In frames, an uninitialized object is identified by its NEW instruction itself, not by the call inserted before it.
                LabelNode itself = new LabelNode();
                calls.add(itself);
                for (AbstractInsnNode back = at.getPrevious(); back != null && back.getOpcode() < 0; back = back.getPrevious()) {
                    if (back instanceof LabelNode) {
                        behind.put((LabelNode) back, itself);
                    }
                }
            }
            method.instructions.insertBefore(at, calls);
        }
        for (AbstractInsnNode at : method.instructions.toArray()) {
            if (at instanceof FrameNode) {
                FrameNode frame = (FrameNode) at;
                frame.local.replaceAll(type -> type instanceof LabelNode ? behind.getOrDefault(type, (LabelNode) type) : type);
                frame.stack.replaceAll(type -> type instanceof LabelNode ? behind.getOrDefault(type, (LabelNode) type) : type);
            }
        }
    }

    static void levels(InsnList calls, int key, int sizes, int first, Map<Integer, Integer> numbers) {
        int last = -1;
        for (int level = 0; level < sizes; level++) {
            last = numbers.containsKey(key + level) ? level : last;
        }
        if (last < 0) {
            return;
        }
        for (int level = sizes - 1; level >= 0; level--) {
            calls.add(new VarInsnNode(ISTORE, first + level));
        }
        calls.add(new InsnNode(LCONST_1));
        for (int level = 0; level <= last; level++) {
            calls.add(new VarInsnNode(ILOAD, first + level));
            Integer number = numbers.get(key + level);
            if (number == null) {
                calls.add(new InsnNode(I2L));
                calls.add(new InsnNode(LMUL));
            } else {
                calls.add(number(number));
                calls.add(call("level", "(JII)J"));
            }
        }
        calls.add(new InsnNode(POP2));
        for (int level = 0; level < sizes; level++) {
            calls.add(new VarInsnNode(ILOAD, first + level));
        }
    }

    static AbstractInsnNode number(int value) {
        if (value >= -1 && value <= 5) {
            return new InsnNode(ICONST_0 + value);
        }
        if (value == (short) value) {
            return new IntInsnNode(value == (byte) value ? BIPUSH : SIPUSH, value);
        }
        return new LdcInsnNode(value);
    }

    static MethodInsnNode call(String name, String descriptor) {
        return new MethodInsnNode(INVOKESTATIC, owner, name, descriptor, false);
    }

    // Comparison of the two results.

    static void compare(String name, byte[] reference, byte[] after, Map<String, Integer> stacks) {
        ClassNode wanted = read(reference);
        ClassNode is = read(after);
        if (wanted.methods.size() != is.methods.size()) {
            wrong(name + " has other methods");
            return;
        }
        for (int i = 0; i < wanted.methods.size(); i++) {
            MethodNode one = wanted.methods.get(i);
            MethodNode other = is.methods.get(i);
            compared++;
            List<String> a = told(one);
            List<String> b = told(other);
            for (int line = 0; line < Math.max(a.size(), b.size()); line++) {
                String x = line < a.size() ? a.get(line) : "nothing";
                String y = line < b.size() ? b.get(line) : "nothing";
                if (isWidened(x, y)) {
                    break;
                }
                if (!x.equals(y)) {
                    wrong(name + "." + one.name + " is " + y + ", the reference " + x);
                    break;
                }
            }
            // The rewriter may set max_stack (the maximum stack depth) higher than necessary, but by at most 2.
            int stack = stacks.get(other.name + other.desc);
            if (other.maxStack < one.maxStack || other.maxStack > stack + 2 || other.maxLocals != one.maxLocals) {
                wrong(name + "." + one.name + " has " + other.maxStack + " " + other.maxLocals + ", the reference " + one.maxStack + " " + one.maxLocals);
            }
        }
    }

    /**
     * True if the reference replaced a jump that is too far by the inverted condition and a wide jump. This can differ, because the reference's
     * constants have other numbers, so {@code ldc} is a byte longer or shorter. The next instructions are shifted and not compared, but still run.
     */
    static boolean isWidened(String reference, String is) {
        String[] x = reference.split(" ");
        String[] y = is.split(" ");
        if (x.length != 4 || y.length != 4 || !x[0].equals(y[0]) || !x[2].equals("to") || !y[2].equals("to")) {
            return false;
        }
        int wide = Integer.parseInt(x[1]);
        int plain = Integer.parseInt(y[1]);
        boolean turned = plain >= IFEQ && plain <= IF_ACMPNE ? wide == ((plain + 1) ^ 1) - 1 : plain >= IFNULL && wide == (plain ^ 1);
        return turned && Integer.parseInt(x[3]) == Integer.parseInt(x[0]) + 2;
    }

    /** Returns a method's code as lines of text. Positions in them are numbers of instructions. */
    static List<String> told(MethodNode method) {
        Map<LabelNode, Integer> places = new IdentityHashMap<>();
        int place = 0;
        for (AbstractInsnNode at : method.instructions) {
            if (at instanceof LabelNode) {
                places.put((LabelNode) at, place);
            }
            place += at.getOpcode() >= 0 ? 1 : 0;
        }
        List<String> lines = new ArrayList<>();
        place = 0;
        for (AbstractInsnNode at : method.instructions) {
            String told = instruction(at, places);
            if (told != null) {
                lines.add(place + " " + told + annotations(at.visibleTypeAnnotations) + annotations(at.invisibleTypeAnnotations));
            }
            place += at.getOpcode() >= 0 ? 1 : 0;
        }
        for (TryCatchBlockNode range : method.tryCatchBlocks) {
            lines.add("handler " + places.get(range.start) + " " + places.get(range.end) + " " + places.get(range.handler) + " " + range.type
                    + annotations(range.visibleTypeAnnotations));
        }
        for (LocalVariableNode v : method.localVariables == null ? new ArrayList<LocalVariableNode>() : method.localVariables) {
            lines.add("variable " + v.name + " " + v.desc + " " + v.signature + " " + places.get(v.start) + " " + places.get(v.end) + " " + v.index);
        }
        if (method.visibleLocalVariableAnnotations != null) {
            for (LocalVariableAnnotationNode v : method.visibleLocalVariableAnnotations) {
                StringBuilder told = new StringBuilder("annotated " + v.typeRef + " " + v.desc);
                for (int i = 0; i < v.start.size(); i++) {
                    told.append(' ').append(places.get(v.start.get(i))).append(' ').append(places.get(v.end.get(i))).append(' ').append(v.index.get(i));
                }
                lines.add(told.toString());
            }
        }
        return lines;
    }

    static String annotations(List<TypeAnnotationNode> all) {
        StringBuilder told = new StringBuilder();
        if (all != null) {
            for (TypeAnnotationNode a : all) {
                told.append(" @").append(a.typeRef).append(a.desc);
            }
        }
        return told.toString();
    }

    static String instruction(AbstractInsnNode at, Map<LabelNode, Integer> places) {
        if (at instanceof LabelNode) {
            return null;
        }
        StringBuilder told = new StringBuilder().append(at.getOpcode());
        if (at instanceof LineNumberNode) {
            return "line " + ((LineNumberNode) at).line;
        } else if (at instanceof FrameNode) {
            return "frame" + types(((FrameNode) at).local, places) + " |" + types(((FrameNode) at).stack, places);
        } else if (at instanceof JumpInsnNode) {
            told.append(" to ").append(places.get(((JumpInsnNode) at).label));
        } else if (at instanceof TableSwitchInsnNode) {
            TableSwitchInsnNode s = (TableSwitchInsnNode) at;
            told.append(" ").append(s.min).append(" ").append(s.max).append(" ").append(places.get(s.dflt));
            s.labels.forEach(label -> told.append(' ').append(places.get(label)));
        } else if (at instanceof LookupSwitchInsnNode) {
            LookupSwitchInsnNode s = (LookupSwitchInsnNode) at;
            told.append(" ").append(s.keys).append(" ").append(places.get(s.dflt));
            s.labels.forEach(label -> told.append(' ').append(places.get(label)));
        } else if (at instanceof VarInsnNode) {
            told.append(" ").append(((VarInsnNode) at).var);
        } else if (at instanceof IntInsnNode) {
            told.append(" ").append(((IntInsnNode) at).operand);
        } else if (at instanceof IincInsnNode) {
            told.append(" ").append(((IincInsnNode) at).var).append(" ").append(((IincInsnNode) at).incr);
        } else if (at instanceof LdcInsnNode) {
            told.append(" ").append(((LdcInsnNode) at).cst);
        } else if (at instanceof TypeInsnNode) {
            told.append(" ").append(((TypeInsnNode) at).desc);
        } else if (at instanceof MultiANewArrayInsnNode) {
            told.append(" ").append(((MultiANewArrayInsnNode) at).desc).append(" ").append(((MultiANewArrayInsnNode) at).dims);
        } else if (at instanceof FieldInsnNode) {
            FieldInsnNode f = (FieldInsnNode) at;
            told.append(" ").append(f.owner).append(" ").append(f.name).append(" ").append(f.desc);
        } else if (at instanceof MethodInsnNode) {
            MethodInsnNode m = (MethodInsnNode) at;
            told.append(" ").append(m.owner).append(" ").append(m.name).append(" ").append(m.desc);
        } else if (!(at instanceof InsnNode)) {
            throw new IllegalStateException("not compared: " + at.getClass());
        }
        return told.toString();
    }

    static String types(List<Object> types, Map<LabelNode, Integer> places) {
        StringBuilder told = new StringBuilder();
        for (Object type : types) {
            told.append(' ').append(type instanceof LabelNode ? "new@" + places.get(type) : type);
        }
        return told.toString();
    }

    // Methods that were not rewritten.

    /** Checks the reason why a method was not rewritten: with the calls, it exceeds a limit of the class file format or comes close to it. */
    static void justify(String name, byte[] bytes, String method, String reason) {
        ClassNode node = read(bytes);
        node.methods.removeIf(m -> !(m.name + m.desc).equals(method));
        MethodNode of = node.methods.get(0);
        int stack = of.maxStack;
        Map<Integer, Integer> all = new HashMap<>();
        int allocations = 0;
        for (AbstractInsnNode at : of.instructions) {
            int opcode = at.getOpcode();
            if (opcode == NEW || opcode == NEWARRAY || opcode == ANEWARRAY || opcode == MULTIANEWARRAY) {
                for (int level = 0; level < 8; level++) {
                    all.put((allocations << 8) + level, 1_000_000);
                }
                allocations++;
            }
        }
        insert(of, all);
        int slack = 16 + 8 * allocations;
        Map<AbstractInsnNode, LabelNode> jumps = new IdentityHashMap<>();
        for (AbstractInsnNode at : of.instructions.toArray()) {
            if (at instanceof JumpInsnNode) {
                LabelNode here = new LabelNode();
                of.instructions.insertBefore(at, here);
                jumps.put(at, here);
            }
        }
        LabelNode end = new LabelNode();
        of.instructions.add(end);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        int length = 0;
        try {
            node.accept(writer);
            length = end.getLabel().getOffset();
            writer.toByteArray();
        } catch (MethodTooLargeException e) {
            length = 1 << 20;
        }
        boolean right;
        if (reason.contains("longer")) {
            left[0]++;
            right = length + slack > 65_535;
        } else if (reason.contains("jump")) {
            left[1]++;
            int farthest = 0;
            for (Map.Entry<AbstractInsnNode, LabelNode> jump : jumps.entrySet()) {
                int distance = ((JumpInsnNode) jump.getKey()).label.getLabel().getOffset() - jump.getValue().getLabel().getOffset();
                farthest = Math.max(farthest, Math.abs(distance));
            }
            right = farthest + slack > 32_767;
        } else {
            left[2]++;
            right = reason.contains("stack") && stack + 2 > 65_535;
        }
        if (!right) {
            wrong(name + "." + method + " is left alone: " + reason);
        }
    }
}
