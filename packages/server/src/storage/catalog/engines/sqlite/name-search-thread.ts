import { workerData } from 'node:worker_threads'
import { serveNameSearches } from './name-search.ts'

// The worker thread of createNameSearchThread.

const { directory }: { directory: string } = workerData
serveNameSearches(directory)
