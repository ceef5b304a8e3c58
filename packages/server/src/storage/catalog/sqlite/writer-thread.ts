import { workerData } from 'node:worker_threads'
import { serveChanges } from './writer.ts'

// The worker thread of startWriterThread.

const { directory }: { directory: string } = workerData
serveChanges(directory)
