// Rust programs take random numbers from `ProcessPrng` in bcryptprimitives.dll. wine has no such function before version 9.
__declspec(dllimport) unsigned char SystemFunction036(void *bytes, unsigned long length);

__declspec(dllexport) int ProcessPrng(unsigned char *bytes, unsigned long long length) {
    return SystemFunction036(bytes, (unsigned long)length);
}
