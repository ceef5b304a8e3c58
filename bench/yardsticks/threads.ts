/** libuv's threads: the same number for the yardsticks as for the service. */
export const yardstickThreads = { UV_THREADPOOL_SIZE: '16' }
