import { workerData } from 'node:worker_threads'
import { serveContents } from './contents.ts'

// The worker thread of createContentReaderThread.

const { directory }: { directory: string } = workerData
serveContents(directory)
