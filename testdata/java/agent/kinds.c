/* What Kinds.java allocates through JNI. */
#include <jni.h>

JNIEXPORT jobject JNICALL Java_Kinds_jniObject(JNIEnv *env, jclass self, jclass type) {
    jmethodID constructor = (*env)->GetMethodID(env, type, "<init>", "()V");
    if (constructor == NULL) return NULL;
    return (*env)->NewObject(env, type, constructor);
}

JNIEXPORT jobject JNICALL Java_Kinds_jniIntArray(JNIEnv *env, jclass self, jint length) {
    return (*env)->NewIntArray(env, length);
}
