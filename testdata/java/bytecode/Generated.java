import static org.objectweb.asm.Opcodes.*;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.TypeReference;

/**
 * {@code SEED METHODS FILE}: writes random classes with METHODS methods in total, which compute and allocate. In the file, each class
 * follows its name. Frames, jumps, switches and tables are as unusual as class files allow. Some methods and some jumps are nearly as long
 * as allowed. Every method ends for all arguments. Some methods throw.
 */
public class Generated {
    static final String NODE = "Runs$Node";
    static final String OBJECT = "java/lang/Object";
    static final int[] VERSIONS = {V17, V17, V17, V1_8, V1_7, V1_6, V1_5, V1_4};
    static final int PER_CLASS = 10;

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[0]));
        int methods = Integer.parseInt(args[1]);
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Paths.get(args[2]))))) {
            for (int made = 0, number = 0; made < methods; number++) {
                int count = Math.min(PER_CLASS, methods - made);
                String name = "Gen" + number;
                byte[] bytes = type(name, random, count);
                made += count;
                out.writeUTF(name);
                out.writeInt(bytes.length);
                out.write(bytes);
            }
        }
        System.out.println("READY 1");
    }

    /** Returns a class with one constructor. Its other methods are static. */
    static byte[] type(String name, Random random, int methods) {
        int version = VERSIONS[random.nextInt(VERSIONS.length)];
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(version, ACC_PUBLIC, name, null, NODE, null);
        writer.visitSource(name + ".java", null);
        MethodVisitor drop = writer.visitMethod(ACC_STATIC, "drop", "(" + "J".repeat(127) + ")V", null, null);
        drop.visitInsn(RETURN);
        drop.visitMaxs(0, 0);
        new Generated(writer, name, "<init>", "(I)V", version, random).body();
        for (int i = 1; i < methods; i++) {
            new Generated(writer, name, "m" + i, "(I)J", version, random).body();
        }
        return deeper(writer.toByteArray());
    }

    /** Raises the maximum stack of each method: ASM ignores unreachable code when it computes this value, but the verifier does not. */
    static byte[] deeper(byte[] bytes) {
        ClassWriter writer = new ClassWriter(0);
        new ClassReader(bytes).accept(new ClassVisitor(ASM8, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                return new MethodVisitor(ASM8, super.visitMethod(access, name, descriptor, signature, exceptions)) {
                    @Override
                    public void visitMaxs(int stack, int locals) {
                        super.visitMaxs(stack > 60_000 ? stack : stack + 24, locals);
                    }
                };
            }
        }, 0);
        return writer.toByteArray();
    }

    final String owner;
    final MethodVisitor mv;
    final Random random;
    final boolean framed;
    final boolean subroutines;
    /** True if methods with a very deep stack may be generated: ASM computes the depth only for Java 7 and later. */
    final boolean deepest;
    final boolean constructor;
    final Label from = new Label();
    /** Types of locals as in stack map frames. Null for a free slot, and for the second slot of a long or double. */
    Object[] slots = new Object[400];
    final List<Object> stack = new ArrayList<>();
    final List<Runnable> variables = new ArrayList<>();
    int next;
    int names;
    /** The local variable with the sum, a long, which the method returns. */
    int sum;
    /** True directly after a frame, because two frames must not be at the same instruction. */
    boolean fresh;
    /** Maximum number of further statements. */
    int budget;

    Generated(ClassWriter writer, String owner, String name, String descriptor, int version, Random random) {
        this.owner = owner;
        this.random = random;
        constructor = name.equals("<init>");
        framed = (version & 0xffff) >= V1_6;
        subroutines = (version & 0xffff) < V1_6;
        deepest = (version & 0xffff) >= V1_7;
        mv = writer.visitMethod(constructor ? ACC_PUBLIC : ACC_PUBLIC | ACC_STATIC, name, descriptor, null, null);
    }

    void body() {
        mv.visitCode();
        mark(from);
        budget = 3 + random.nextInt(12);
        if (constructor) {
            slots[next++] = UNINITIALIZED_THIS;
        }
        slots[next++] = INTEGER;
        if (constructor) {
            insn(ALOAD, 0);
            stack.add(UNINITIALIZED_THIS);
            construct(NODE, UNINITIALIZED_THIS, owner, 3);
        }
        // Some locals get high numbers, which may need wide instructions.
        next += random.nextInt(4) == 0 ? 250 + random.nextInt(10) : random.nextInt(3);
        sum = local(LONG);
        insn(LCONST_0);
        insn(LSTORE, sum);
        int kind = random.nextInt(40);
        statements(3);
        if (kind < 3) {
            far();
        } else if (kind == 3 && deepest) {
            deep();
        } else if (kind == 4) {
            table(200 + random.nextInt(2000));
        } else if (kind == 5) {
            largeSwitch();
        }
        statements(3);
        if (kind == 6) {
            // Make the method about as long as allowed, so that the inserted bytecode just fits or just does not fit.
            fill(65_535 - 9 - random.nextInt(random.nextBoolean() ? 12 : 150));
        }
        if (constructor) {
            insn(ALOAD, 0);
            insn(LLOAD, sum);
            mv.visitFieldInsn(PUTFIELD, NODE, "sum", "J");
            insn(RETURN);
        } else {
            insn(LLOAD, sum);
            insn(LRETURN);
        }
        Label end = new Label();
        mv.visitLabel(end);
        // Variables with unusual ranges: one that ends with the code, an empty one, and one that overlaps another in the same slot.
        mv.visitLocalVariable("all", "I", null, from, end, constructor ? 1 : 0);
        mv.visitLocalVariable("none", "I", null, from, from, constructor ? 1 : 0);
        mv.visitLocalVariable("over", "Ljava/util/List;", "Ljava/util/List<TT;>;", from, end, 1);
        variables.forEach(Runnable::run);
        mv.visitMaxs(0, 0);
        mv.visitEnd();
    }

    // Single instructions.

    void mark(Label label) {
        mv.visitLabel(label);
        if (random.nextInt(3) == 0) {
            mv.visitLineNumber(1 + random.nextInt(65_535), label);
        }
    }

    int here() {
        Label here = new Label();
        mv.visitLabel(here);
        return here.getOffset();
    }

    void insn(int opcode) {
        fresh = false;
        mv.visitInsn(opcode);
    }

    void insn(int opcode, int slot) {
        fresh = false;
        mv.visitVarInsn(opcode, slot);
    }

    void jump(int opcode, Label to) {
        fresh = false;
        // Some jumps use opcode 200 (goto_w), although goto would suffice.
        mv.visitJumpInsn(opcode == GOTO && random.nextInt(6) == 0 ? 200 : opcode, to);
    }

    void number(int value) {
        fresh = false;
        if (value >= -1 && value <= 5) {
            mv.visitInsn(ICONST_0 + value);
        } else if (value == (byte) value) {
            mv.visitIntInsn(BIPUSH, value);
        } else if (value == (short) value) {
            mv.visitIntInsn(SIPUSH, value);
        } else {
            mv.visitLdcInsn(value);
        }
    }

    void push(Object type) {
        stack.add(type);
    }

    void pop(int count) {
        for (int i = 0; i < count; i++) {
            stack.remove(stack.size() - 1);
        }
    }

    void discard() {
        insn(POP);
        pop(1);
    }

    /** Marks a jump target. If the class has stack map frames, adds a frame with the current types. */
    void target(Label label) {
        if (fresh) {
            insn(NOP);
        }
        mark(label);
        if (framed) {
            List<Object> locals = new ArrayList<>();
            int last = slots.length;
            while (last > 0 && slots[last - 1] == null) {
                last--;
            }
            for (int slot = 0; slot < last; slot++) {
                locals.add(slots[slot] == null ? TOP : slots[slot]);
                if (slots[slot] == LONG || slots[slot] == DOUBLE) {
                    slot++;
                    last = Math.max(last, slot + 1);
                }
            }
            mv.visitFrame(F_NEW, locals.size(), locals.toArray(), stack.size(), stack.toArray());
            fresh = true;
        }
    }

    int local(Object type) {
        int slot = next;
        slots[slot] = type;
        next += type == LONG || type == DOUBLE ? 2 : 1;
        return slot;
    }

    void end(int slots) {
        Arrays.fill(this.slots, slots, next, null);
        next = slots;
    }

    /** Adds NOPs until the code has this length. */
    void fill(int length) {
        for (int at = here(); at < length; at++) {
            insn(NOP);
        }
    }

    // Expressions: each pushes one value.

    void integer(int depth) {
        switch (depth <= 0 ? random.nextInt(2) : random.nextInt(11)) {
            case 0: number(random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(300) - 100); push(INTEGER); break;
            case 1: insn(ILOAD, constructor ? 1 : 0); push(INTEGER); break;
            case 2: case 3:
                integer(depth - 1);
                integer(depth - 1);
                insn(new int[] {IADD, ISUB, IMUL, IXOR, IAND}[random.nextInt(5)]);
                pop(1);
                break;
            case 4: choice(depth, () -> integer(depth - 1), INTEGER); break;
            case 5: array(depth); insn(ARRAYLENGTH); pop(1); push(INTEGER); break;
            case 6: wide(depth - 1); insn(L2I); pop(1); push(INTEGER); break;
            case 7: chosen(depth, () -> integer(depth - 1), INTEGER); break;
            case 8:
                object(depth - 1);
                fresh = false;
                mv.visitTypeInsn(INSTANCEOF, NODE);
                annotate(TypeReference.INSTANCEOF);
                pop(1);
                push(INTEGER);
                break;
            case 9:
                integer(depth - 1);
                object(depth - 1);
                mv.visitMethodInsn(INVOKESTATIC, "Runs", "mix", "(ILjava/lang/Object;)I", false);
                fresh = false;
                pop(2);
                push(INTEGER);
                break;
            default: fraction(depth - 1); insn(D2I); pop(1); push(INTEGER);
        }
    }

    void wide(int depth) {
        switch (depth <= 0 ? random.nextInt(2) : random.nextInt(5)) {
            case 0: insn(LCONST_1); push(LONG); break;
            case 1: fresh = false; mv.visitLdcInsn(random.nextLong()); push(LONG); break;
            case 2: integer(depth - 1); insn(I2L); pop(1); push(LONG); break;
            case 3: choice(depth, () -> wide(depth - 1), LONG); break;
            default: wide(depth - 1); wide(depth - 1); insn(LADD); pop(1);
        }
    }

    void fraction(int depth) {
        switch (depth <= 0 ? random.nextInt(2) : random.nextInt(4)) {
            case 0: insn(DCONST_1); push(DOUBLE); break;
            case 1: fresh = false; mv.visitLdcInsn(random.nextDouble()); push(DOUBLE); break;
            case 2: integer(depth - 1); insn(I2D); pop(1); push(DOUBLE); break;
            default: fraction(depth - 1); fraction(depth - 1); insn(DADD); pop(1);
        }
    }

    void object(int depth) {
        switch (depth <= 0 ? random.nextInt(2) : random.nextInt(8)) {
            case 0: insn(ACONST_NULL); push(OBJECT); break;
            case 1: case 2: case 3: node(depth); break;
            case 4: choice(depth, () -> object(depth - 1), OBJECT); break;
            case 5: chosen(depth, () -> object(depth - 1), OBJECT); break;
            default:
                array(depth);
                pop(1);
                push(OBJECT);
        }
    }

    /** Allocates an array with one dimension or several, and pushes it with its own type. */
    void array(int depth) {
        int kind = random.nextInt(6);
        if (kind < 4) {
            size(depth);
            pop(1);
            fresh = false;
            if (kind < 2) {
                mv.visitIntInsn(NEWARRAY, T_BOOLEAN + random.nextInt(8));
            } else if (kind == 2) {
                mv.visitTypeInsn(ANEWARRAY, random.nextBoolean() ? NODE : "[[J");
                annotate(TypeReference.NEW);
            } else {
                mv.visitMultiANewArrayInsn("[[I", 1);
            }
        } else {
            int sizes = 2 + random.nextInt(random.nextInt(5) == 0 ? 6 : 2);
            for (int i = 0; i < sizes; i++) {
                size(i == 0 ? depth : 0);
            }
            pop(sizes);
            fresh = false;
            String brackets = "[".repeat(sizes + random.nextInt(2));
            mv.visitMultiANewArrayInsn(brackets + new String[] {"I", "J", "L" + NODE + ";"}[random.nextInt(3)], sizes);
        }
        push("[I");
    }

    void size(int depth) {
        integer(depth - 1);
        if (random.nextInt(12) == 0) {
            // The length may be negative.
            number(3);
            insn(IREM);
        } else {
            number(3);
            insn(IAND);
        }
    }

    /** Pushes a new object. While the random arguments of its constructor are computed, the uninitialized object is on the stack or in a local. */
    void node(int depth) {
        Label label = new Label();
        mark(label);
        fresh = false;
        mv.visitTypeInsn(NEW, NODE);
        annotate(TypeReference.NEW);
        switch (random.nextInt(4)) {
            case 0: {
                int before = next;
                int slot = local(label);
                insn(ASTORE, slot);
                insn(ALOAD, slot);
                push(label);
                construct(NODE, label, NODE, depth);
                insn(ALOAD, slot);
                push(OBJECT);
                end(before);
                break;
            }
            case 1:
                // This object is dropped before its constructor is called.
                if (depth > 1) {
                    push(label);
                    integer(depth - 1);
                    pop(2);
                    insn(POP2);
                    insn(ACONST_NULL);
                    push(OBJECT);
                    break;
                }
            // fallthrough
            default:
                push(label);
                insn(DUP);
                push(label);
                construct(NODE, label, NODE, depth);
                stack.set(stack.size() - 1, OBJECT);
        }
    }

    /** Pushes the constructor's arguments and calls the constructor. Then the uninitialized object gets its final type. */
    void construct(String type, Object uninitialized, String becomes, int depth) {
        String descriptor;
        int arguments;
        switch (random.nextInt(5)) {
            case 0: integer(depth - 1); descriptor = "(I)V"; arguments = 1; break;
            case 1: object(depth - 1); descriptor = "(Ljava/lang/Object;)V"; arguments = 1; break;
            case 2:
                wide(depth - 1);
                object(depth - 1);
                fraction(depth - 2);
                descriptor = "(JLjava/lang/Object;D)V";
                arguments = 3;
                break;
            case 3: object(depth - 1); object(depth - 2); descriptor = "(Ljava/lang/Object;Ljava/lang/Object;)V"; arguments = 2; break;
            default: descriptor = "()V"; arguments = 0;
        }
        fresh = false;
        mv.visitMethodInsn(INVOKESPECIAL, type, "<init>", descriptor, false);
        pop(arguments + 1);
        stack.replaceAll(t -> t == uninitialized ? becomes : t);
        for (int i = 0; i < slots.length; i++) {
            slots[i] = slots[i] == uninitialized ? becomes : slots[i];
        }
    }

    /** Pushes one of two values after a conditional jump, while other values are on the stack below. */
    void choice(int depth, Runnable value, Object type) {
        Label otherwise = new Label();
        Label end = new Label();
        condition(depth, otherwise);
        value.run();
        pop(1);
        jump(GOTO, end);
        target(otherwise);
        value.run();
        pop(1);
        push(type);
        target(end);
    }

    /** Jumps to the label if a condition holds. */
    void condition(int depth, Label to) {
        switch (random.nextInt(4)) {
            case 0: integer(depth - 1); pop(1); jump(IFEQ + random.nextInt(6), to); break;
            case 1: integer(depth - 1); integer(depth - 1); pop(2); jump(IF_ICMPEQ + random.nextInt(6), to); break;
            case 2: object(depth - 1); pop(1); jump(random.nextBoolean() ? IFNULL : IFNONNULL, to); break;
            default: object(depth - 1); object(0); pop(2); jump(random.nextBoolean() ? IF_ACMPEQ : IF_ACMPNE, to);
        }
    }

    /** Pushes one of several values, chosen by a switch. */
    void chosen(int depth, Runnable value, Object type) {
        Label[] labels = new Label[1 + random.nextInt(4)];
        Arrays.setAll(labels, i -> new Label());
        Label end = new Label();
        integer(depth - 1);
        pop(1);
        select(labels, labels.length);
        for (int i = 0; i < labels.length; i++) {
            target(labels[i]);
            value.run();
            pop(1);
            if (i + 1 < labels.length) {
                jump(GOTO, end);
            }
        }
        push(type);
        target(end);
    }

    /** Adds a switch with random padding that jumps to some of the labels. The first label is the default target. */
    void select(Label[] labels, int cases) {
        for (int i = random.nextInt(4); i > 0; i--) {
            insn(NOP);
        }
        fresh = false;
        Label[] to = new Label[cases];
        for (int i = 0; i < cases; i++) {
            to[i] = labels[random.nextInt(labels.length)];
        }
        if (random.nextBoolean()) {
            int low = new int[] {0, -2, Integer.MIN_VALUE, Integer.MAX_VALUE - cases + 1}[random.nextInt(4)];
            mv.visitTableSwitchInsn(low, low + cases - 1, labels[0], to);
        } else {
            IntStream any = IntStream.concat(IntStream.of(0, Integer.MIN_VALUE, Integer.MAX_VALUE, 3), random.ints());
            int[] keys = any.distinct().limit(cases).sorted().toArray();
            mv.visitLookupSwitchInsn(labels[0], keys, to);
        }
    }

    void annotate(int sort) {
        if (random.nextInt(6) == 0) {
            mv.visitInsnAnnotation(sort << 24, null, "LRuns$Mark;", random.nextBoolean()).visitEnd();
        }
    }

    // Statements: the stack is empty before and after each statement.

    void statements(int depth) {
        for (int i = 1 + random.nextInt(3); i > 0 && budget > 0; i--) {
            budget--;
            statement(depth);
        }
        add(depth);
    }

    /** Generates a statement that updates the method's sum: {@code sum = sum * 31 + expression}. */
    void add(int depth) {
        mark(new Label());
        insn(LLOAD, sum);
        push(LONG);
        number(31);
        insn(I2L);
        insn(LMUL);
        integer(depth);
        insn(I2L);
        insn(LADD);
        pop(2);
        insn(LSTORE, sum);
    }

    void statement(int depth) {
        int before = next;
        switch (depth <= 0 ? 0 : random.nextInt(subroutines ? 9 : 8)) {
            case 0: add(3); break;
            case 1: variable(depth); return;
            case 2: {
                Label otherwise = new Label();
                Label end = new Label();
                condition(3, otherwise);
                statements(depth - 1);
                end(before);
                jump(GOTO, end);
                target(otherwise);
                if (random.nextBoolean()) {
                    statements(depth - 1);
                    end(before);
                }
                target(end);
                break;
            }
            case 3: loop(depth); break;
            case 4: {
                Label[] labels = new Label[1 + random.nextInt(5)];
                Arrays.setAll(labels, i -> new Label());
                integer(2);
                pop(1);
                select(labels, random.nextInt(6) + 1);
                for (Label label : labels) {
                    target(label);
                    // This case falls through to the next one.
                    statements(depth - 1);
                    end(before);
                }
                break;
            }
            case 5: attempt(depth); break;
            case 6: dead(depth); break;
            case 7: handlerFirst(depth); break;
            default: subroutine(depth);
        }
        end(before);
    }

    /** Declares a local variable that stays until the end of the block. Its entry in the variable table covers only a part of this code. */
    void variable(int depth) {
        Object[] types = {INTEGER, LONG, DOUBLE, OBJECT};
        int kind = random.nextInt(4);
        Label start = new Label();
        switch (kind) {
            case 0: integer(3); pop(1); insn(ISTORE, local(INTEGER)); break;
            case 1: wide(3); pop(1); insn(LSTORE, local(LONG)); break;
            case 2: fraction(3); pop(1); insn(DSTORE, local(DOUBLE)); break;
            default: object(3); pop(1); insn(ASTORE, local(OBJECT));
        }
        int slot = next - (types[kind] == LONG || types[kind] == DOUBLE ? 2 : 1);
        mark(start);
        if (kind == 0) {
            fresh = false;
            mv.visitIincInsn(slot, random.nextInt(3) == 0 ? 1000 : 1);
        }
        add(depth);
        Label end = new Label();
        mark(end);
        String name = "v" + names++;
        String descriptor = kind == 3 ? "Ljava/lang/Object;" : "IJD".substring(kind, kind + 1);
        boolean annotated = random.nextInt(4) == 0;
        variables.add(() -> {
            mv.visitLocalVariable(name, descriptor, null, start, end, slot);
            if (annotated) {
                mv.visitLocalVariableAnnotation(TypeReference.LOCAL_VARIABLE << 24, null, new Label[] {start, from},
                        new Label[] {end, start}, new int[] {slot, slot}, "LRuns$Mark;", true).visitEnd();
            }
        });
        if (random.nextBoolean()) {
            object(3);
            discard();
        }
    }

    /** Adds a loop of at most four rounds. Also jumps back from the middle of the loop, and from a switch. */
    void loop(int depth) {
        int before = next;
        insn(ICONST_0);
        int counter = local(INTEGER);
        insn(ISTORE, counter);
        Label head = new Label();
        Label end = new Label();
        target(head);
        if (random.nextBoolean()) {
            // The first instruction of the loop is an allocation.
            node(2);
            discard();
        }
        fresh = false;
        mv.visitIincInsn(counter, 1);
        insn(ILOAD, counter);
        number(1 + random.nextInt(4));
        jump(IF_ICMPGT, end);
        statements(depth - 1);
        if (random.nextInt(3) == 0) {
            integer(2);
            pop(1);
            Label on = new Label();
            select(new Label[] {on, head, head}, 1 + random.nextInt(3));
            target(on);
            statements(depth - 2);
        }
        condition(2, head);
        statements(depth - 2);
        end(counter + 1);
        jump(GOTO, head);
        target(end);
        end(before);
    }

    /** Adds nested exception ranges that begin and end at allocations. */
    void attempt(int depth) {
        int before = next;
        Label start = new Label();
        Label middle = new Label();
        Label stop = new Label();
        Label handler = new Label();
        Label any = new Label();
        Label end = new Label();
        mark(start);
        node(3);
        discard();
        statements(depth - 1);
        mark(middle);
        node(2);
        discard();
        mark(stop);
        end(before);
        jump(GOTO, end);
        handler(handler, "java/lang/RuntimeException");
        jump(GOTO, end);
        handler(any, "java/lang/Throwable");
        target(end);
        mv.visitTryCatchBlock(start, middle, handler, random.nextBoolean() ? "java/lang/RuntimeException" : "java/lang/IllegalStateException");
        if (random.nextInt(6) == 0) {
            mv.visitTryCatchAnnotation(TypeReference.EXCEPTION_PARAMETER << 24, null, "LRuns$Mark;", true).visitEnd();
        }
        if (random.nextInt(4) != 0) {
            mv.visitTryCatchBlock(middle, stop, any, null);
            mv.visitTryCatchBlock(start, stop, any, "java/lang/Throwable");
        }
    }

    /** Adds an exception handler, which adds the place of the exception to the sum. The exception is on the stack. */
    void handler(Label label, String caught) {
        push(caught);
        target(label);
        pop(1);
        fresh = false;
        mv.visitMethodInsn(INVOKESTATIC, "Runs", "told", "(Ljava/lang/Throwable;)J", false);
        insn(LLOAD, sum);
        insn(LADD);
        insn(LSTORE, sum);
    }

    /** Adds a handler that precedes the code it covers. */
    void handlerFirst(int depth) {
        int before = next;
        Label body = new Label();
        Label handler = new Label();
        Label end = new Label();
        jump(GOTO, body);
        handler(handler, "java/lang/Throwable");
        jump(GOTO, end);
        target(body);
        statements(depth - 1);
        node(3);
        discard();
        Label stop = new Label();
        mark(stop);
        end(before);
        target(end);
        mv.visitTryCatchBlock(body, stop, handler, null);
    }

    /** Adds unreachable code. */
    void dead(int depth) {
        int before = next;
        Label end = new Label();
        jump(GOTO, end);
        target(new Label());
        statements(depth - 1);
        node(2);
        discard();
        end(before);
        insn(ACONST_NULL);
        insn(ATHROW);
        target(end);
    }

    /** Adds a subroutine, as old compilers used for finally, and calls it twice. */
    void subroutine(int depth) {
        int before = next;
        Label routine = new Label();
        Label end = new Label();
        int address = next++;
        jump(JSR, routine);
        node(2);
        discard();
        jump(JSR, routine);
        jump(GOTO, end);
        mark(routine);
        insn(ASTORE, address);
        object(3);
        discard();
        insn(RET, address);
        target(end);
        end(before);
    }

    // Extreme sizes.

    /** Adds a jump that is as far as a 16-bit offset allows, or nearly as far. */
    void far() {
        int before = next;
        int less = new int[] {0, 1, 3, 4, 8, 30, 200}[random.nextInt(7)];
        Label to = new Label();
        if (random.nextBoolean()) {
            integer(1);
            pop(1);
            int at = here();
            fresh = false;
            mv.visitJumpInsn(IFEQ + random.nextInt(6), to);
            statements(2);
            end(before);
            fill(at + 32_767 - less);
            target(to);
            if (here() - at > 32_767) {
                throw new IllegalStateException("too far");
            }
        } else {
            insn(ICONST_0);
            int counter = local(INTEGER);
            insn(ISTORE, counter);
            target(to);
            int at = here();
            fresh = false;
            mv.visitIincInsn(counter, 1);
            statements(2);
            end(counter + 1);
            fill(at + 32_768 - less - 3);
            insn(ILOAD, counter);
            number(2);
            fresh = false;
            mv.visitJumpInsn(IF_ICMPLT, to);
        }
        end(before);
    }

    /** Makes the stack as deep as allowed, or nearly as deep, with an array on top. */
    void deep() {
        int longs = 32_767 - random.nextInt(4);
        for (int i = 0; i < longs; i++) {
            insn(LCONST_1);
        }
        insn(ICONST_3);
        mv.visitIntInsn(NEWARRAY, T_INT);
        insn(POP);
        for (; longs >= 127; longs -= 127) {
            mv.visitMethodInsn(INVOKESTATIC, owner, "drop", "(" + "J".repeat(127) + ")V", false);
        }
        for (; longs > 0; longs--) {
            insn(POP2);
        }
    }

    /** Adds many exception ranges. Most cover one instruction, and some cover an allocation. */
    void table(int ranges) {
        Label handler = new Label();
        Label end = new Label();
        for (int i = 0; i < ranges; i++) {
            Label start = new Label();
            Label stop = new Label();
            mark(start);
            if (random.nextInt(50) == 0) {
                node(2);
                discard();
            } else {
                insn(NOP);
            }
            mark(stop);
            mv.visitTryCatchBlock(start, stop, handler, random.nextBoolean() ? null : "java/lang/IllegalStateException");
        }
        jump(GOTO, end);
        handler(handler, "java/lang/Throwable");
        target(end);
    }

    void largeSwitch() {
        int before = next;
        Label[] labels = {new Label(), new Label(), new Label()};
        integer(2);
        pop(1);
        select(labels, 500 + random.nextInt(2000));
        for (Label label : labels) {
            target(label);
            statements(1);
            end(before);
        }
    }
}
