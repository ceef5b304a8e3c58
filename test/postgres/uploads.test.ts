import { describeOnPostgres } from './suites.ts'

// These look at files of uploads, so their bytes are on the disk.
describeOnPostgres('upload-fast-path', 'tus-concurrent', 'tus-crash')
