package io.github.heapdiff.junit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads one JSON value: objects as maps, arrays as lists, integers as {@code Long}, and other numbers as
 * {@code Double}.
 */
final class JsonReader {
    /** Maximum nesting depth of objects and arrays. Reports have a much smaller depth. */
    private static final int DEEPEST = 64;

    private final String text;
    private int at;

    JsonReader(String text) {
        this.text = text;
    }

    Object read() throws MalformedJsonException {
        Object value = value(0);
        space();
        if (at < text.length()) {
            throw malformed("more text after the end of the value");
        }
        return value;
    }

    private Object value(int depth) throws MalformedJsonException {
        if (depth > DEEPEST) {
            throw malformed("nested too deep");
        }
        space();
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) throws MalformedJsonException {
        Map<String, Object> object = new LinkedHashMap<>();
        at++;
        space();
        if (skip('}')) {
            return object;
        }
        do {
            space();
            String key = string();
            space();
            expect(':');
            object.put(key, value(depth + 1));
            space();
        } while (skip(','));
        expect('}');
        return object;
    }

    private List<Object> array(int depth) throws MalformedJsonException {
        List<Object> array = new ArrayList<>();
        at++;
        space();
        if (skip(']')) {
            return array;
        }
        do {
            array.add(value(depth + 1));
            space();
        } while (skip(','));
        expect(']');
        return array;
    }

    private String string() throws MalformedJsonException {
        expect('"');
        StringBuilder string = new StringBuilder();
        while (true) {
            char c = next();
            if (c == '"') {
                return string.toString();
            }
            string.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() throws MalformedJsonException {
        char c = next();
        switch (c) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = Character.digit(next(), 16);
                    if (digit < 0) {
                        throw malformed("not a hexadecimal digit");
                    }
                    code = code * 16 + digit;
                }
                return (char) code;
            case '"':
            case '\\':
            case '/':
                return c;
            default:
                throw malformed("unknown escape");
        }
    }

    private Object word(String word, Object value) throws MalformedJsonException {
        if (!text.startsWith(word, at)) {
            throw malformed("unknown word");
        }
        at += word.length();
        return value;
    }

    private Object number() throws MalformedJsonException {
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String number = text.substring(from, at);
        try {
            if (number.matches("-?[0-9]+")) {
                return Long.parseLong(number);
            }
            return Double.parseDouble(number);
        } catch (NumberFormatException e) {
            throw malformed("no value");
        }
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() throws MalformedJsonException {
        if (at >= text.length()) {
            throw malformed("ends too early");
        }
        return text.charAt(at);
    }

    private char next() throws MalformedJsonException {
        char c = peek();
        at++;
        return c;
    }

    private boolean skip(char c) {
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) throws MalformedJsonException {
        if (!skip(c)) {
            throw malformed("`" + c + "` is missing");
        }
    }

    private MalformedJsonException malformed(String what) {
        return new MalformedJsonException(what + " at character " + at);
    }

    /** Thrown if the text is not JSON. The message contains the position. */
    static final class MalformedJsonException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedJsonException(String message) {
            super(message);
        }
    }
}
