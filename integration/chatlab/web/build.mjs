// Bundles src into dist: `npm ci && npm run bundle`.
import {build} from 'esbuild'

await build({
  entryPoints: {app: 'src/main.js', style: 'src/style.css'},
  outdir: 'dist',
  entryNames: '[name]',
  bundle: true,
  minify: true,
  legalComments: 'eof',
  target: 'es2022',
  format: 'iife',
  logLevel: 'info',
})
