package io.github.heapdiff.junit;

/**
 * Thrown if the library cannot decide whether the heap grew or whether an object is collected, or cannot measure a deep
 * size. The message contains the reason.
 */
public final class HeapUndecidedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    HeapUndecidedException(String message) {
        super(message);
    }

    HeapUndecidedException(String message, Throwable cause) {
        super(message, cause);
    }
}
