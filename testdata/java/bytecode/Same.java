import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.Instruction;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.PseudoInstruction;
import java.lang.classfile.TypeAnnotation;
import java.lang.classfile.attribute.*;
import java.lang.classfile.instruction.*;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.*;

/**
 * Reads pairs of original and rewritten class files with the JDK's class file API. Removes the inserted calls and prints all remaining
 * differences: instructions, targets, handlers, frames, lines, variables, type annotations. Counts the original files that this API cannot
 * read or verify. JDK 24 or later.
 */
public class Same {
    static int wrong;
    static int unread;

    public static void main(String[] args) throws Exception {
        String owner = args[1];
        int classes = 0;
        int methods = 0;
        int invalid = 0;
        ClassFile api = ClassFile.of(ClassFile.DebugElementsOption.PASS_DEBUG);
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Paths.get(args[0]))))) {
            while (true) {
                byte[] before;
                try {
                    before = in.readNBytes(in.readInt());
                } catch (EOFException e) {
                    break;
                }
                byte[] after = in.readNBytes(in.readInt());
                methods += compare(api.parse(before), api.parse(after), owner);
                classes++;
                if (fault(api, before) == null) {
                    String fault = fault(api, after);
                    if (fault != null) {
                        wrong(api.parse(after), "verify", fault);
                    }
                } else {
                    invalid++;
                }
            }
        }
        System.out.println("SAME " + classes + " " + methods + " " + unread + " " + invalid + " " + wrong);
        System.out.println("READY 1");
    }

    /** Returns the verifier's first error, or the reason why the class file cannot be read. */
    static String fault(ClassFile api, byte[] bytes) {
        try {
            List<VerifyError> errors = api.verify(bytes);
            return errors.isEmpty() ? null : errors.get(0).getMessage().replace('\n', ' ');
        } catch (RuntimeException e) {
            return e.toString();
        }
    }

    static void wrong(ClassModel of, String where, String what) {
        wrong++;
        if (wrong < 20) {
            System.out.println("WRONG " + of.thisClass().asInternalName() + " " + where + " " + what);
        }
    }

    static int compare(ClassModel before, ClassModel after, String owner) {
        if (before.methods().size() != after.methods().size()) {
            wrong(before, "methods", "differ in number");
            return 0;
        }
        int compared = 0;
        for (int i = 0; i < before.methods().size(); i++) {
            MethodModel was = before.methods().get(i);
            MethodModel is = after.methods().get(i);
            if (was.code().isEmpty()) {
                continue;
            }
            List<String> old;
            try {
                old = new Told(was, null).lines;
            } catch (RuntimeException e) {
                unread++;
                continue;
            }
            compared++;
            List<String> now;
            try {
                now = new Told(is, owner).lines;
            } catch (RuntimeException e) {
                now = List.of(e.toString());
            }
            if (!old.equals(now)) {
                int at = 0;
                while (at < old.size() && at < now.size() && old.get(at).equals(now.get(at))) {
                    at++;
                }
                String a = at < old.size() ? old.get(at) : "nothing";
                String b = at < now.size() ? now.get(at) : "nothing";
                wrong(before, was.methodName() + "" + was.methodType(), "was " + a + " is " + b);
            }
        }
        return compared;
    }

    /** A method's code as lines of text. Positions in them are numbers of instructions. */
    static class Told {
        final List<String> lines = new ArrayList<>();
        final Map<Integer, Integer> at = new HashMap<>();
        final Map<Integer, Integer> self = new HashMap<>();
        final CodeAttribute code;

        Told(MethodModel method, String owner) {
            CodeModel model = method.code().get();
            code = (CodeAttribute) model;
            List<Instruction> all = new ArrayList<>();
            List<Integer> places = new ArrayList<>();
            int place = 0;
            for (CodeElement element : model) {
                if (element instanceof Instruction instruction) {
                    all.add(instruction);
                    places.add(place);
                    place += instruction.sizeInBytes();
                }
            }
            boolean[] inserted = new boolean[all.size()];
            if (owner != null) {
                for (int i = 0; i < all.size(); i++) {
                    if (all.get(i) instanceof InvokeInstruction call && call.owner().asInternalName().equals(owner)) {
                        mark(all, inserted, i, call.name().stringValue());
                    }
                }
            }
            int number = 0;
            for (int i = 0; i < all.size(); i++) {
                at.put(places.get(i), number);
                self.put(places.get(i), inserted[i] ? -1 : number);
                number += inserted[i] ? 0 : 1;
            }
            at.put(code.codeLength(), number);
            for (int i = 0; i < all.size(); i++) {
                if (!inserted[i]) {
                    lines.add(instruction(all.get(i)));
                }
            }
            for (var handler : code.exceptionHandlers()) {
                lines.add("handler " + label(handler.tryStart()) + " " + label(handler.tryEnd()) + " " + label(handler.handler())
                        + " " + handler.catchType());
            }
            for (var attribute : code.attributes()) {
                attribute(attribute);
            }
        }

        /** Marks the inserted instructions that belong to a call of a counting method. */
        static void mark(List<Instruction> all, boolean[] inserted, int call, String hook) {
            inserted[call] = true;
            inserted[call - 1] = true;
            if (hook.equals("array") || hook.equals("returned")) {
                inserted[call - 2] = true;
            }
            if (hook.equals("level") && !inserted[call - 2]) {
                // Mark all instructions from the stores of the sizes to the load of the last size, before a multianewarray.
                int to = call;
                while (!(all.get(to) instanceof NewMultiArrayInstruction)) {
                    to++;
                }
                int sizes = ((NewMultiArrayInstruction) all.get(to)).dimensions();
                int from = call;
                while (!(all.get(from) instanceof ConstantInstruction c && c.constantValue().equals(1L))) {
                    from--;
                }
                Arrays.fill(inserted, from - sizes, to, true);
            }
        }

        String label(Label label) {
            return "" + at.get(code.labelToBci(label));
        }

        String itself(Label label) {
            return "" + self.get(code.labelToBci(label));
        }

        String instruction(Instruction i) {
            String told = i.opcode() + " ";
            return switch (i) {
                case BranchInstruction b -> told + label(b.target());
                case TableSwitchInstruction s -> told + s.lowValue() + " " + s.highValue() + " " + label(s.defaultTarget()) + cases(s.cases());
                case LookupSwitchInstruction s -> told + label(s.defaultTarget()) + cases(s.cases());
                case DiscontinuedInstruction.JsrInstruction j -> told + label(j.target());
                default -> i.toString();
            };
        }

        String cases(List<SwitchCase> cases) {
            StringBuilder told = new StringBuilder();
            for (SwitchCase c : cases) {
                told.append(' ').append(c.caseValue()).append(':').append(label(c.target()));
            }
            return told.toString();
        }

        String types(List<StackMapFrameInfo.VerificationTypeInfo> types) {
            StringBuilder told = new StringBuilder();
            for (var type : types) {
                told.append(' ');
                if (type instanceof StackMapFrameInfo.UninitializedVerificationTypeInfo u) {
                    told.append("new@").append(itself(u.newTarget()));
                } else {
                    told.append(type);
                }
            }
            return told.toString();
        }

        void attribute(java.lang.classfile.Attribute<?> attribute) {
            switch (attribute) {
                case StackMapTableAttribute frames -> {
                    for (StackMapFrameInfo frame : frames.entries()) {
                        lines.add("frame " + label(frame.target()) + types(frame.locals()) + " |" + types(frame.stack()));
                    }
                }
                case LineNumberTableAttribute table -> {
                    for (LineNumberInfo line : table.lineNumbers()) {
                        lines.add("line " + at.get(line.startPc()) + " " + line.lineNumber());
                    }
                }
                case LocalVariableTableAttribute table -> {
                    for (LocalVariableInfo v : table.localVariables()) {
                        lines.add("variable " + at.get(v.startPc()) + " " + at.get(v.startPc() + v.length()) + " " + v.slot() + " "
                                + v.name() + " " + v.type());
                    }
                }
                case LocalVariableTypeTableAttribute table -> {
                    for (LocalVariableTypeInfo v : table.localVariableTypes()) {
                        lines.add("generic " + at.get(v.startPc()) + " " + at.get(v.startPc() + v.length()) + " " + v.slot() + " "
                                + v.name() + " " + v.signature());
                    }
                }
                case RuntimeVisibleTypeAnnotationsAttribute all -> all.annotations().forEach(this::annotation);
                case RuntimeInvisibleTypeAnnotationsAttribute all -> all.annotations().forEach(this::annotation);
                default -> {}
            }
        }

        void annotation(TypeAnnotation a) {
            String target = switch (a.targetInfo()) {
                case TypeAnnotation.OffsetTarget t -> itself(t.target());
                case TypeAnnotation.TypeArgumentTarget t -> itself(t.target()) + " " + t.typeArgumentIndex();
                case TypeAnnotation.LocalVarTarget t -> {
                    StringBuilder told = new StringBuilder();
                    for (var v : t.table()) {
                        told.append(' ').append(label(v.startLabel())).append(' ').append(label(v.endLabel())).append(' ').append(v.index());
                    }
                    yield told.toString();
                }
                default -> "";
            };
            lines.add("annotation " + a.targetInfo().targetType() + " " + target + " " + a.targetPath() + " " + a.annotation());
        }
    }
}
