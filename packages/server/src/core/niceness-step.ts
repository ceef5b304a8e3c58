/**
 * How much higher the niceness of other threads is than that of the main thread. A larger step makes listings beside uploads
 * faster, and uploads beside a flood of listings slower (bench/RESULTS.md).
 */
export const nicenessStep = 8
