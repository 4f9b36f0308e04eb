/* An agent for tests: "return=N" is what attaching to it returns, "mark=FILE" makes a file. */
#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti;
    if ((*vm)->GetEnv(vm, (void **) &jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return JNI_ERR;
    }
    const char *mark = strstr(options, "mark=");
    if (mark != NULL) {
        FILE *file = fopen(mark + strlen("mark="), "w");
        if (file == NULL) {
            return JNI_ERR;
        }
        fputs(options, file);
        fclose(file);
    }
    const char *code = strstr(options, "return=");
    return code != NULL ? atoi(code + strlen("return=")) : JNI_OK;
}
