import { randomKills } from './faults.ts'
import { testFaults } from './short-form.ts'

await testFaults(randomKills)
