import { workerData } from 'node:worker_threads'
import { serveChanges } from './sqlite-writer.ts'

// The worker thread of startWriterThread.

const { directory }: { directory: string } = workerData
serveChanges(directory)
