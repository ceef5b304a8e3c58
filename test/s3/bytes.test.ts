import { describeOnS3 } from './suites.ts'

describeOnS3('bytes', 'ranges', 'conditional-bytes', 'variants', 'one-item')
