import { workerData } from 'node:worker_threads'
import { serveWrites } from './sqlite-writer.ts'

// The worker thread of startWriterThread.

const { directory }: { directory: string } = workerData
serveWrites(directory)
