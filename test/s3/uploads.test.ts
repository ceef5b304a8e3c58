import { describeOnS3 } from './suites.ts'

describeOnS3('upload-raw', 'tus-protocol')
