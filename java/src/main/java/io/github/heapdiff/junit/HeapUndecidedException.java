package io.github.heapdiff.junit;

/** The library cannot decide whether the heap grew. The message has the reason. */
public final class HeapUndecidedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    HeapUndecidedException(String message) {
        super(message);
    }

    HeapUndecidedException(String message, Throwable cause) {
        super(message, cause);
    }
}
