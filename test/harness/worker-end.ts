/** Runs `clean`, which must be synchronous, when the worker ends that runs test files one after another. */
export function atWorkerEnd(clean: () => void): void {
  process.once('exit', clean)
  // Vitest ends its workers with SIGTERM, which by itself calls no listener of `exit`.
  if (!process.listeners('SIGTERM').includes(endWorker)) process.once('SIGTERM', endWorker)
}

const endWorker = () => process.exit()
