import { builtInSizes } from '../src/core/variant-sizes.ts'
import { createVariantList, type Variant } from '../src/core/variants.ts'

export const variantList = createVariantList(builtInSizes)

function variant(name: string): Variant {
  const found = variantList.find(name, 'webp')
  if (found === undefined) throw new Error(`no size ${name}`)
  return found
}

export const thumb = variant('thumb')
export const medium = variant('medium')
