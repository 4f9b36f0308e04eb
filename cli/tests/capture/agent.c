/* An agent for tests. Its options: "return=N" is the code that it returns, "mark=FILE" writes the options to a file,
   and "hold=FILE" waits until a file exists. */
#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti;
    jint got = (*vm)->GetEnv(vm, (void **) &jvmti, JVMTI_VERSION_11);
    if (got == JNI_EDETACHED) {
        return 212; /* The JVM is still starting. */
    }
    if (got != JNI_OK) {
        return JNI_ERR;
    }
    const char *hold = strstr(options, "hold=");
    for (int i = 0; hold != NULL && i < 6000 && access(hold + strlen("hold="), F_OK) != 0; i++) {
        usleep(10000);
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
